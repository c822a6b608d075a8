// The study as heat maps: block size by lanes, array size by connections, with overlap and without it side by
// side.

const distinct = (values) => [...new Set(values)].sort((a, b) => a - b);

const STUDY_AXES = {
  block_bytes: {title: 'Block size', text: blockText},
  lanes: {title: 'Lanes', text: laneText},
  bytes: {title: 'Bytes a call', text: size},
  connections: {title: 'Connections', text: (n) => String(n)},
};

const VIEWS = [
  {id: 'blocks', title: 'Block size × lanes', y: 'block_bytes', x: 'lanes', fixed: ['bytes', 'connections']},
  {id: 'wire', title: 'Bytes × connections', y: 'bytes', x: 'connections', fixed: ['block_bytes', 'lanes']},
];

const fixedText = (cell, fixed) =>
    fixed.map((key) => `${STUDY_AXES[key].title.toLowerCase()} ${STUDY_AXES[key].text(cell[key])}`)
        .join(', ');

function cellTip(cell, data, other) {
  const ceiling = ceilingOf(cell, data);
  const rows = [
    ['Rate', rate(cell.bytes_per_second) + noiseText(cell.noise)],
    ...(ceiling ? [['Share', `${percent(cell.bytes_per_second / ceiling.rate)} ${ceiling.words}`]] : []),
    ['Latency, p50', timeOrNone(cell.p50_us)],
    ...['bytes', 'block_bytes', 'lanes', 'connections'].map(
        (key) => [STUDY_AXES[key].title, STUDY_AXES[key].text(cell[key])]),
    ['Arrays go', viaWords(viaOf(cell))],
    ['Overlap', cell.overlap ? 'on' : 'off'],
    ...(num(cell.overlap_factor) === null ? [] : [['Stages ÷ wall', factor(cell.overlap_factor)]]),
    ...(known(cell.bottleneck) ? [['Bottleneck', cell.bottleneck]] : []),
    ...(known(cell.calls) ? [['Calls', count(cell.calls)]] : []),
    ...(other ? [[
      cell.overlap ? 'Gain by overlap' : 'With overlap',
      factor(
          cell.overlap ? cell.bytes_per_second / other.bytes_per_second :
                         other.bytes_per_second / cell.bytes_per_second)
    ]] :
                []),
  ];
  return {title: cell.operation, rows};
}

/** The other settings under which a view has cells, the fullest (then the fastest) first. */
function slicesOf(cells, view) {
  const slices = new Map();
  for (const cell of cells) {
    const key = view.fixed.map((name) => cell[name]).join('/');
    if (!slices.has(key)) slices.set(key, {cells: [], text: fixedText(cell, view.fixed)});
    slices.get(key).cells.push(cell);
  }
  return [...slices.values()].sort(
      (a, b) => b.cells.length - a.cells.length ||
          bestCell(b.cells).bytes_per_second - bestCell(a.cells).bytes_per_second);
}

/** One view: its choice of the other settings, and a map for overlap on and off each. */
function buildView(body, view, cells, data, colours) {
  const ys = distinct(cells.map((cell) => cell[view.y]));
  const xs = distinct(cells.map((cell) => cell[view.x]));
  if (xs.length * ys.length < 2) return;
  const slices = slicesOf(cells, view);
  const choices = slices.length > 1 ? [...slices, {cells, text: 'the best of all'}] : slices;
  const partners = partnersOf(cells);
  let chosen = choices[0].cells;
  const redraws = [];
  const hosts = [true, false]
                    .filter((on) => cells.some((cell) => Boolean(cell.overlap) === on))
                    .map((on) => ({on, host: el('div', {class: 'plot'})}));
  body.append(
      el('h3', {}, view.title),
      el('div', {class: 'controls'},
         choices.length > 1 ? selector(
                                  'At', choices.map(({text}) => text), 0,
                                  (index) => {
                                    chosen = choices[index].cells;
                                    redraws.forEach((redraw) => redraw());
                                  }) :
                              el('p', {class: 'small'}, `At ${choices[0].text}.`)),
      el('div', {class: 'pair'},
         hosts.map(
             ({on, host}) => el('div', {}, el('h4', {}, on ? 'With overlap' : 'Without overlap'), host))));
  for (const {on, host} of hosts) {
    redraws.push(chart(
        host, `study-${view.id}-${on ? 'on' : 'off'}`,
        (width) => drawHeatMap(width, {
          xs,
          ys,
          colours,
          best: bestCell(chosen),
          xText: STUDY_AXES[view.x].text,
          yText: STUDY_AXES[view.y].text,
          xTitle: STUDY_AXES[view.x].title,
          yTitle: STUDY_AXES[view.y].title,
          title: `${view.title}, overlap ${on ? 'on' : 'off'}`,
          cellAt: (x, y) => bestCell(chosen.filter(
              (cell) => cell[view.x] === x && cell[view.y] === y && Boolean(cell.overlap) === on)),
          tip: (cell) => cellTip(cell, data, partners.get(cell)),
          shareOf(cell) {
            const ceiling = ceilingOf(cell, data);
            return ceiling ? cell.bytes_per_second / ceiling.rate : null;
          },
        })));
  }
}

/** Cells that are drawn together: of one operation, its arrays going one way. */
const groupOf = (cell) => cell.operation + (viaOf(cell) === 'wire' ? '' : ` ${viaWords(viaOf(cell))}`);

function studySection(data) {
  const cells = list(data.study).filter((cell) => num(cell.bytes_per_second) !== null);
  if (!cells.length) return null;
  const groups = [...new Set(cells.map(groupOf))];
  const one = new Set(cells.map((cell) => cell.operation)).size === 1;
  const nameOf = (cell) => (one ? viaWords(viaOf(cell)) : groupOf(cell));
  return {
    id: 'study',
    title: 'Study',
    note:
        'Every cell is a run of its own. Colours of one picture share one scale, which begins at its slowest cell.',
    build(body) {
      const place = el('div', {});
      const show = (group) => {
        const mine = cells.filter((cell) => groupOf(cell) === group);
        const ceiling = ceilingOf(mine[0], data);
        const colours = rateColours(mine);
        place.replaceChildren(
            el('div', {class: 'controls'}, colourKey(colours),
               el('span', {class: 'small'},
                  `Cells are in ${colours.unit}` +
                      (ceiling ? `; the share is ${ceiling.words}, ${rate(ceiling.rate)}.` : '.'))));
        VIEWS.forEach((view) => buildView(place, view, mine, data, colours));
      };
      if (groups.length > 1)
        body.append(segments(
            one ? 'Arrays go' : 'Operation',
            groups.map(
                (group) => ({value: group, text: nameOf(cells.find((cell) => groupOf(cell) === group))})),
            groups[0], show));
      body.append(place);
      show(groups[0]);
    },
  };
}
