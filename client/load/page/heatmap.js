// A heat map: one cell for each pair of settings, its colour the rate.

const RAMP = [[68, 1, 84], [65, 68, 135], [42, 120, 142], [34, 168, 132], [122, 209, 81], [253, 231, 37]];

/** A colour for 0 to 1, from dark violet to yellow: its lightness alone tells the order. */
function rampColour(share) {
  const at = Math.min(1, Math.max(0, share)) * (RAMP.length - 1);
  const index = Math.min(RAMP.length - 2, Math.floor(at));
  return RAMP[index].map((low, channel) => Math.round(low + (RAMP[index + 1][channel] - low) * (at - index)));
}

const css = ([r, g, b]) => `rgb(${r},${g},${b})`;
const isLight = ([r, g, b]) => 0.299 * r + 0.587 * g + 0.114 * b > 120;

/** The colours of rates from low to high, and how to say them. */
function rateColours(cells) {
  const rates = cells.map((cell) => cell.bytes_per_second);
  const low = Math.min(...rates);
  const high = Math.max(...rates);
  const {factor: by, prefix} = siPrefix(high);
  return {
    low,
    high,
    unit: prefix + 'B/s',
    text: (value) => digits(value / by),
    of: (value) => rampColour(high > low ? (value - low) / (high - low) : 1)
  };
}

function colourKey(colours) {
  const stops =
      RAMP.map((colour, index) => `${css(colour)} ${(100 * index) / (RAMP.length - 1)}%`).join(', ');
  return el(
      'div', {class: 'colourkey'}, el('span', {}, rate(colours.low)),
      el('span', {class: 'gradient', style: `background: linear-gradient(90deg, ${stops})`}),
      el('span', {}, rate(colours.high)), el('span', {class: 'star'}, '★ best'));
}

/** One cell: its colour, its rate, and where there is room its share of the ceiling. */
function heatCell(map, {cell}, {left, top, wide, tall}) {
  const colour = map.colours.of(cell.bytes_per_second);
  const share = map.shareOf(cell);
  const ink = isLight(colour) ? 'ink-dark' : 'ink-light';
  const rate_ = (cell === map.best ? '★ ' : '') + map.colours.text(cell.bytes_per_second);
  const two = share !== null && tall >= 38 && wide >= 44;
  const text = (mark, y, words) => svg(
      'text', {class: `${mark} ${ink}`, x: px(left + wide / 2 - 1), y: px(top + y), 'text-anchor': 'middle'},
      words);
  return svg(
      'g', {'data-cell': ''},
      svg('rect', {x: left, y: top, width: px(wide - 2), height: tall - 2, rx: 3, fill: css(colour)}),
      textWidth(rate_) <= wide - 4 ? text('cell', tall / 2 + (two ? -2 : 3.5), rate_) : null,
      two ? text('share', tall / 2 + 12, percent(share)) : null);
}

/**
 * Draws map: {xs, ys: settings along the axes; xText, yText; xTitle, yTitle; cellAt(x, y): a cell or null;
 * tip(cell); shareOf(cell): of the ceiling, or null; best: the cell to mark; colours}.
 */
function drawHeatMap(width, map) {
  const left = 14 + Math.max(...map.ys.map((y) => textWidth(map.yText(y))));
  const wide = Math.min(132, (width - left - 4) / map.xs.length);
  const tall = Math.round(Math.min(46, Math.max(28, wide * 0.62)));
  const top = 26;
  const bottom = top + tall * map.ys.length;
  const ring =
      svg('rect', {class: 'ring', visibility: 'hidden', width: px(wide - 2), height: tall - 2, rx: 3});
  const items = map.ys.flatMap((y, row) => map.xs.map((x, column) => ({cell: map.cellAt(x, y), row, column})))
                    .filter(({cell}) => cell)
                    .map((item) => ({
                           ...item,
                           x: left + (item.column + 0.5) * wide,
                           y: top + (item.row + 0.5) * tall,
                           tip: () => map.tip(item.cell)
                         }));
  const cells = items.map(
      (item) =>
          heatCell(map, item, {left: px(left + item.column * wide), top: top + item.row * tall, wide, tall}));
  const root = canvas(
      width, bottom + 44, `${map.title}; the arrow keys read it cell by cell`,
      svg('g', {class: 'axis'}, svg('text', {class: 'unit', x: 0, y: 12}, `${map.yTitle} ↓`),
          map.ys.map(
              (y, row) =>
                  svg('text', {x: left - 8, y: top + (row + 0.5) * tall + 3, 'text-anchor': 'end'},
                      map.yText(y))),
          map.xs.map(
              (x, column) =>
                  svg('text', {x: px(left + (column + 0.5) * wide), y: bottom + 16, 'text-anchor': 'middle'},
                      map.xText(x))),
          svg('text', {
            class: 'unit',
            x: px(left + (wide * map.xs.length) / 2),
            y: bottom + 36,
            'text-anchor': 'middle'
          },
              map.xTitle)),
      cells, ring);
  return explore(root, {
    items,
    columns: map.xs.length,
    nearest(x, y) {
      const column = Math.floor((x - left) / wide);
      const row = Math.floor((y - top) / tall);
      return items.findIndex((item) => item.column === column && item.row === row);
    },
    mark: marker(
        ring, (index) => ({x: px(left + items[index].column * wide), y: top + items[index].row * tall})),
  });
}
