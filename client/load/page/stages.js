// Where the server's time goes: mean time of each stage, stacked, one bar an operation.

const INK_DARK = new Set(['receive', 'stage', 'd2h', 'queue']);

function stageRows(data) {
  const operations = list(data.operations).length ? data.operations : [data.total || {}];
  return operations
      .map((stat) => {
        const parts =
            STAGES.map((stage) => ({stage, us: num((stat.stages_us || {})[stage])})).filter(({us}) => us > 0);
        return {
          name: stat.name || stat.operation || 'all calls',
          parts,
          sum: parts.reduce((sum, {us}) => sum + us, 0),
          mean: num((stat.latency_us || {}).mean),
          overlap: num(stat.overlap)
        };
      })
      .filter(({parts}) => parts.length);
}

function stageTip(row) {
  return {
    title: row.name,
    rows: [
      ...row.parts.map(({stage, us}) => [stage, `${time(us)} (${percent(us / row.sum)})`, 'm-' + stage]),
      ['Sum of the stages', time(row.sum)], ['Mean latency', timeOrNone(row.mean)],
      ...(row.overlap === null ? [] : [['Overlap', factor(row.overlap)]])
    ],
  };
}

/** The pieces of one bar; texts only where they fit. */
function stageBar(row, left, top, height, scale) {
  let at = 0;
  return row.parts.map(({stage, us}) => {
    const from = left + scale(at);
    at += us;
    const wide = left + scale(at) - from;
    const text = [`${stage} ${time(us)}`, time(us), stage].find((one) => textWidth(one, 11) + 10 <= wide);
    return [
      svg('rect', {
        class: 'solid m-' + stage,
        x: px(from),
        y: top,
        width: px(Math.max(0.6, wide - (wide > 3 ? 1 : 0))),
        height,
        'data-stage': stage
      }),
      text ? svg('text', {
        class: 'inside ' + (INK_DARK.has(stage) ? 'ink-dark' : 'ink-light'),
        x: px(from + wide / 2),
        y: top + height / 2 + 4,
        'text-anchor': 'middle'
      },
                 text) :
             null,
    ];
  });
}

function drawStages(width, rows, share) {
  const narrow = width < 640;
  const labels =
      narrow ? 0 : Math.min(260, 16 + Math.max(...rows.map((row) => textWidth(row.name, 12, 600))));
  const ends =
      rows.map((row) => `${time(row.sum)}${row.overlap === null ? '' : ` · ${factor(row.overlap)}`}`);
  const room = Math.max(...ends.map((text) => textWidth(text))) + 12;
  const right = width - room;
  const high = Math.max(...rows.map((row) => Math.max(row.sum, share ? 0 : row.mean || 0)));
  const height = 24;
  const pitch = narrow ? 50 : 34;
  const bottom = rows.length * pitch + 6;
  const ticks = timeTicks(high);
  const x = linear(0, share ? 100 : high, labels, right);
  const focus = svg('rect', {
    class: 'ring',
    visibility: 'hidden',
    x: labels - 2,
    width: right - labels + 4,
    height: height + 4,
    rx: 3
  });
  const drawn = rows.map((row, index) => {
    const top = index * pitch + (narrow ? 20 : 4);
    const scale = (us) => (us / (share ? row.sum : high)) * (right - labels);
    const mean = !share && row.mean > 0 ? px(labels + scale(row.mean)) : null;
    return svg(
        'g', {'data-row': row.name},
        narrow ? svg('text', {class: 'name', x: 0, y: top - 6}, fitText(row.name, width - 10, 12, 600)) :
                 svg('text', {class: 'name', x: 0, y: top + 16}, fitText(row.name, labels - 14, 12, 600)),
        stageBar(row, labels, top, height, scale),
        mean === null ?
            null :
            svg('path', {class: 'marker', d: `M${mean} ${top - 5}v9M${mean} ${top + height - 4}v9`}),
        svg('text', {x: (share ? right : labels + scale(Math.max(row.sum, row.mean || 0))) + 8, y: top + 16},
            ends[index]));
  });
  const root = canvas(
      width, bottom + 40, 'Mean time of each stage by operation; the arrow keys read it bar by bar',
      axisBottom({
        left: labels,
        right,
        top: 0,
        bottom,
        scale: x,
        ticks: x.ticks(width / 110),
        text: share ? trim : ticks.text,
        title: share ? 'Share of the sum of the stages, %' : `Mean time, ${ticks.unit}`
      }),
      focus, drawn);
  const items =
      rows.map((row, index) => ({x: (labels + right) / 2, y: index * pitch + 20, tip: () => stageTip(row)}));
  return explore(root, {
    items,
    nearest: (_, y) => (y < bottom ? Math.min(rows.length - 1, Math.max(0, Math.floor(y / pitch))) : -1),
    mark: marker(focus, (index) => ({y: index * pitch + (narrow ? 18 : 2)})),
  });
}

function stagesSection(data) {
  if (data.kind === 'study') return null;  // its total mixes settings
  const rows = stageRows(data);
  if (!rows.length) return null;
  const used = STAGES.filter((stage) => rows.some(({parts}) => parts.some((part) => part.stage === stage)));
  const sums = rows.map(({sum}) => sum);
  // Bars that would be too short to see say more as shares.
  let share = Math.max(...sums, ...rows.map(({mean}) => mean || 0)) > 12 * Math.min(...sums);
  return {
    id: 'stages',
    title: 'Stages at the server',
    note:
        'Mean time of each stage of a call. Stages run at once, so their sum may be longer than the call took: the upright marks are the ' +
        'mean latency, × how often the sum fits into the wall time.',
    build(body) {
      const host = el('div', {class: 'plot'});
      body.append(
          el('div', {class: 'controls'}, legend(used.map((stage) => ({name: stage, mark: 'm-' + stage}))),
             segments(
                 'Scale of the bars', [{value: 'time', text: 'Time'}, {value: 'share', text: 'Share'}],
                 share ? 'share' : 'time',
                 (value) => {
                   share = value === 'share';
                   redraw();
                 })),
          host);
      const redraw = chart(host, 'stages', (width) => drawStages(width, rows, share));
    },
  };
}
