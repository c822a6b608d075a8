// What overlap is worth: the same settings with it and without it.

const settingsOf =
    (cell) => [cell.operation, cell.bytes, cell.block_bytes, cell.lanes, cell.connections].join('/');

/** Cell → the cell that differs from it in overlap alone. */
function partnersOf(cells) {
  const bySettings = new Map();
  for (const cell of cells) {
    const key = settingsOf(cell);
    bySettings.set(key, {...bySettings.get(key), [cell.overlap ? 'on' : 'off']: cell});
  }
  const partners = new Map();
  for (const {on, off} of bySettings.values()) {
    if (!on || !off) continue;
    partners.set(on, off);
    partners.set(off, on);
  }
  return partners;
}

/** [{on, off, gain}] of all settings that were measured both ways. */
function overlapPairs(cells) {
  return [...partnersOf(cells)]
      .filter(([cell, other]) => cell.overlap && other.bytes_per_second > 0 && cell.bytes_per_second > 0)
      .map(([on, off]) => ({on, off, gain: on.bytes_per_second / off.bytes_per_second}));
}

/** For each operation and array size the settings that are fastest with overlap. */
function gainRows(cells) {
  const rows = new Map();
  for (const pair of overlapPairs(cells)) {
    const key = `${pair.on.operation}/${pair.on.bytes}`;
    if (!rows.has(key) || rows.get(key).on.bytes_per_second < pair.on.bytes_per_second) rows.set(key, pair);
  }
  return [...rows.values()].sort(
      (a, b) => byName.compare(a.on.operation, b.on.operation) || a.on.bytes - b.on.bytes);
}

function drawGain(width, rows) {
  const names = rows.map(({on}) => `${on.operation} ${size(on.bytes)}`);
  const left = Math.min(width * 0.36, 16 + Math.max(...names.map((name) => textWidth(name))));
  const right = width - 62;
  const pitch = 26;
  const top = 8;
  const bottom = top + rows.length * pitch;
  const frame = {left, right, top, bottom};
  const high =
      Math.max(...rows.map(({on, off}) => Math.max(on.bytes_per_second, off.bytes_per_second))) * 1.03;
  const x = linear(0, high, left, right);
  const ticks = rateTicks(high);
  const focus = svg('rect', {class: 'solid m-focus', visibility: 'hidden', x: 0, width, height: pitch});
  const root = canvas(
      width, bottom + 42, 'Rates with and without overlap; the arrow keys read it row by row', focus,
      axisBottom({
        ...frame,
        scale: x,
        ticks: x.ticks(width / 110),
        text: ticks.text,
        grid: true,
        title: `Rate, ${ticks.unit}`
      }),
      rows.map(({on, off, gain}, index) => {
        const y = top + (index + 0.5) * pitch;
        const [from, to] = [px(x(off.bytes_per_second)), px(x(on.bytes_per_second))];
        return svg(
            'g', {'data-pair': ''},
            svg('text', {x: left - 10, y: y + 4, 'text-anchor': 'end'}, fitText(names[index], left - 12)),
            svg('line', {class: 'link', x1: from, x2: to, y1: y, y2: y}),
            svg('circle', {class: 'dot hollow', cx: from, cy: y, r: 5}),
            svg('circle', {class: 'dot m-rate', cx: to, cy: y, r: 5.5}),
            svg('text', {class: gain > 1.05 ? 'name' : '', x: Math.max(from, to) + 12, y: y + 4},
                factor(gain)));
      }));
  const items = rows.map(({on, off, gain}, index) => ({
                           x: x(on.bytes_per_second),
                           y: top + (index + 0.5) * pitch,
                           tip: () => ({
                             title: names[index],
                             rows: [
                               ['With overlap', rate(on.bytes_per_second), 'm-rate'],
                               ['Without', rate(off.bytes_per_second)], ['Gain', factor(gain)],
                               ...['block_bytes', 'lanes', 'connections'].map(
                                   (key) => [STUDY_AXES[key].title, STUDY_AXES[key].text(on[key])])
                             ]
                           })
                         }));
  return explore(root, {
    items,
    nearest: (_, y) => (y >= top && y < bottom ? Math.floor((y - top) / pitch) : -1),
    mark: marker(focus, (index) => ({y: top + index * pitch})),
  });
}

function gainSection(data) {
  const rows = gainRows(list(data.study));
  if (!rows.length) return null;
  return {
    id: 'gain',
    title: 'What overlap is worth',
    note:
        'For each array size the settings that are fastest with overlap: filled with it, hollow without it, all else equal.',
    build(body) {
      const host = el('div', {class: 'plot'});
      body.append(host);
      chart(host, 'gain', (width) => drawGain(width, rows));
    },
  };
}
