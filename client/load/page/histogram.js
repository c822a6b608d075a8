// How many calls took how long: a histogram over a logarithmic axis, with the percentiles marked.

const PERCENTILES = ['p50', 'p90', 'p99', 'p99_9', 'max'];

const buckets = (stat) => list(stat.histogram).filter(([upper, calls]) => upper > 0 && calls > 0);

/**
 * Buckets with their lower ends: the one before where they touch, else as far down as the narrowest is wide.
 */
function bounded(stat) {
  const found = buckets(stat);
  let ratio = Infinity;
  for (let i = 1; i < found.length; i += 1) ratio = Math.min(ratio, found[i][0] / found[i - 1][0]);
  if (!(ratio > 1.0005) || ratio > 1.3) ratio = 1.02;
  return found.map(
      ([upper, calls], index) =>
          ({upper, calls, lower: Math.max(upper / ratio, index ? found[index - 1][0] : 0) * (1 - 1e-12)}));
}

/** Spreads the buckets over `bins` equal steps of the logarithm: counts need not be whole. */
function rebin(stat, low, high, bins) {
  const width = Math.log(high / low) / bins;
  const counts = new Array(bins).fill(0);
  for (const {lower, upper, calls} of bounded(stat)) {
    const from = Math.log(lower / low) / width;
    const to = Math.log(upper / low) / width;
    for (let bin = Math.max(0, Math.floor(from)); bin < Math.min(bins, Math.ceil(to)); bin += 1) {
      const part = Math.min(to, bin + 1) - Math.max(from, bin);
      counts[bin] += (calls * Math.max(0, part)) / (to - from);
    }
  }
  return counts;
}

/** Percentiles as lines with their names on top, in as many rows as keep the names apart. */
function percentileMarks(stat, x, frame) {
  const marks = PERCENTILES.map((key) => ({key, value: num((stat.latency_us || {})[key])}))
                    .filter(({value}) => value > 0);
  const free = [];
  return marks.reverse().map(({key, value}) => {
    const at = x(value);
    const text = `${percentileName(key)} ${time(value)}`;
    const wide = textWidth(text, 12, 600) + 12;
    const left = Math.max(frame.left, Math.min(at - wide / 2, frame.right + 10 - wide));
    let row = free.findIndex((edge) => left + wide <= edge);
    if (row < 0) row = free.push(Infinity) - 1;
    free[row] = left;
    return {key, at: px(at), text, left: left + wide / 2, row};
  });
}

/** What reads as a bar's tip; edge(bin) is where it begins, topOf(calls) where it ends above. */
function barItems(counts, x, edge, topOf) {
  const total = counts.reduce((a, b) => a + b, 0);
  let below = 0;
  return counts.map((calls, bin) => {
    below += calls;
    const share = below / total;
    return {
      x: (edge(bin) + edge(bin + 1)) / 2,
      y: topOf(calls),
      tip: () => ({
        title: `${time(x.invert(edge(bin)))} to ${time(x.invert(edge(bin + 1)))}`,
        rows: [
          ['Calls', calls > 0 && calls < 0.5 ? 'under 1' : count(calls)], ['Share', percent(calls / total)],
          ['At most this', percent(Math.min(1, share))]
        ]
      })
    };
  });
}

function drawHistogram(width, stat) {
  const left = 46;
  const right = width - 14;
  const latency = stat.latency_us || {};
  const all = bounded(stat);
  const [low, high] = logDomain(
      [Math.min(all[0].lower, latency.min || Infinity), all[all.length - 1].upper, latency.max || 0], 0.3,
      1.05);
  const x = logarithmic(low, high, left, right);
  const marks = percentileMarks(stat, x, {left, right});
  const top = 30 + 18 * (1 + Math.max(0, ...marks.map(({row}) => row)));
  const bottom = top + 190;
  const frame = {left, right, top, bottom};
  const bins = Math.round(Math.min(96, Math.max(28, (right - left) / 8)));
  const counts = rebin(stat, low, high, bins);
  const total = counts.reduce((a, b) => a + b, 0);
  const y = linear(0, (maxOf(counts) / total) * 1.05, bottom, top);
  const wide = (right - left) / bins;
  const tall = (calls) => (calls > 0 ? Math.max(1.5, bottom - y(calls / total)) : 0);
  const ticks = timeTicks(Math.sqrt(low * high));
  const hover = svg(
      'rect', {class: 'solid m-focus', visibility: 'hidden', width: px(wide), y: top, height: bottom - top});
  const bars = counts.map(
      (calls, bin) =>
          (calls > 0 ? `M${px(left + bin * wide)} ${bottom}v${px(-tall(calls))}h${
                           px(Math.max(1, wide - 1))}v${px(tall(calls))}z` :
                       ''));
  const root = canvas(
      width, bottom + 42, 'Histogram of latency; the arrow keys read it bar by bar', axisLeft({
        ...frame,
        top: 26,
        scale: y,
        ticks: y.ticks(4),
        text: (value) => trim(value * 100),
        unit: '% of calls'
      }),
      axisBottom({
        ...frame,
        scale: x,
        ticks: x.ticks(width / 60),
        text: ticks.text,
        title: `Latency, ${ticks.unit}, logarithmic`
      }),
      hover,
      svg('path',
          {class: 'solid m-rate', 'data-bars': counts.filter((calls) => calls > 0).length, d: bars.join('')}),
      marks.map(
          ({key, at, text, left: middle, row}) =>
              svg('g', {class: 'percentile', 'data-percentile': key},
                  svg('line', {x1: at, x2: at, y1: 30 + 18 * row + 4, y2: bottom}),
                  svg('text', {x: px(middle), y: 30 + 18 * row, 'text-anchor': 'middle'}, text))));
  const items = barItems(counts, x, (bin) => left + bin * wide, (calls) => bottom - tall(calls));
  return explore(root, {
    items,
    nearest: (at) => Math.min(bins - 1, Math.max(0, Math.floor((at - left) / wide))),
    mark: marker(hover, (index) => ({x: px(left + index * wide)})),
  });
}

function histogramSection(data) {
  if (data.kind === 'study') return null;  // its total mixes settings
  const stats = [data.total || {}, ...(list(data.operations).length > 1 ? data.operations : [])].filter(
      (stat) => buckets(stat).length);
  if (!stats.length) return null;
  return {
    id: 'latency',
    title: 'Latency',
    note: 'From the moment a call was meant to start until its last byte, of all answered calls.',
    build(body) {
      let chosen = 0;
      const host = el('div', {class: 'plot'});
      const names = stats.map((stat, index) => (index === 0 ? 'all calls' : stat.name));
      if (stats.length > 1)
        body.append(el('div', {class: 'controls'}, selector('Show', names, 0, (index) => {
                         chosen = index;
                         redraw();
                       })));
      body.append(host);
      const redraw = chart(host, 'histogram', (width) => drawHistogram(width, stats[chosen]));
    },
  };
}
