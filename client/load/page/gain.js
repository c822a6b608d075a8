// What overlap is worth: the same settings with it and without it.

/** How the arrays of a cell went; results of before there was a choice do not say. */
const viaOf = (cell) => cell.via || 'wire';
const VIA_WORDS = {
  wire: 'over the wire',
  region: 'through shared memory',
  resident: 'from resident arrays'
};
const viaWords = (via) => VIA_WORDS[via] || `via ${via}`;

const settingsOf =
    (cell) => [cell.operation, viaOf(cell), cell.bytes, cell.block_bytes, cell.lanes, cell.connections].join(
        '/');

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

/** For each operation, way and array size the settings that are fastest with overlap. */
function gainRows(cells) {
  const rows = new Map();
  for (const pair of overlapPairs(cells)) {
    const key = `${pair.on.operation}/${viaOf(pair.on)}/${pair.on.bytes}`;
    if (!rows.has(key) || rows.get(key).on.bytes_per_second < pair.on.bytes_per_second) rows.set(key, pair);
  }
  return [...rows.values()].sort(
      (a, b) => byName.compare(a.on.operation, b.on.operation) || byName.compare(viaOf(a.on), viaOf(b.on)) ||
          a.on.bytes - b.on.bytes);
}

function drawGain(width, rows) {
  const ways = new Set(rows.map(({on}) => viaOf(on))).size > 1;
  const names = rows.map(({on}) => `${on.operation} ${ways ? viaOf(on) + ' ' : ''}${size(on.bytes)}`);
  const high = Math.max(...rows.flatMap(({on, off}) => [on.bytes_per_second, off.bytes_per_second])) * 1.03;
  const ticks = rateTicks(high);
  const bars = (mark, cells) => ({
    type: 'bar',
    data: cells.map((cell) => cell.bytes_per_second),
    backgroundColor: colourOf(mark),
    categoryPercentage: 0.8,
    barPercentage: 0.95
  });
  return plot(
      width, rows.length * 34 + 56, 'Rates with and without overlap; the arrow keys read it row by row', {
        labels: names.map((name) => fitText(name, width * 0.36)),
        datasets: [bars('m-rate', rows.map(({on}) => on)), bars('m-queue', rows.map(({off}) => off))],
        scales: {x: axis(`Rate, ${ticks.unit}`, 0, high, ticks.text), y: nameAxis()},
        options: {indexAxis: 'y', layout: {padding: {right: 56}}},
        over(made) {
          made.getDatasetMeta(0).data.forEach((bar, index) => {
            const {gain} = rows[index];
            const end = Math.max(bar.x, made.getDatasetMeta(1).data[index].x);
            const y = made.scales.y.getPixelForValue(index);
            drawText(
                made, factor(gain), end + 10, y, gain > 1.05 ? 'm-ink' : 'm-soft',
                {weight: gain > 1.05 ? 600 : 400});
          });
        },
        down: true,
        items: (made) =>
            rows.map(({on, off, gain}, index) => ({
                       x: made.getDatasetMeta(0).data[index].x,
                       y: made.scales.y.getPixelForValue(index),
                       tall: 34,
                       tip: () => ({
                         title: names[index],
                         rows: [
                           ['With overlap', rate(on.bytes_per_second) + noiseText(on.noise), 'm-rate'],
                           ['Without', rate(off.bytes_per_second) + noiseText(off.noise), 'm-queue'],
                           ['Gain', factor(gain)],
                           ...['block_bytes', 'lanes', 'connections'].map(
                               (key) => [STUDY_AXES[key].title, STUDY_AXES[key].text(on[key])])
                         ]
                       })
                     })),
      });
}

function gainSection(data) {
  const rows = gainRows(list(data.study));
  if (!rows.length) return null;
  return {
    id: 'gain',
    title: 'What overlap is worth',
    note:
        'For each array size the settings that are fastest with overlap: its rate above, and below that without overlap, all else equal.',
    build(body) {
      const host = el('div', {class: 'plot'});
      body.append(host);
      chart(host, 'gain', (width) => drawGain(width, rows));
    },
  };
}
