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

/** The percentiles that are marked: [{us, text}]. */
const percentileMarks = (stat) => PERCENTILES.map((key) => ({key, us: num((stat.latency_us || {})[key])}))
                                      .filter(({us}) => us > 0)
                                      .map(({key, us}) => ({us, text: `${percentileName(key)} ${time(us)}`}));

/** What reads as a bar's tip: bars of `counts` calls, edge(bin) is the latency where one begins. */
function barTips(counts, edge) {
  const total = counts.reduce((a, b) => a + b, 0);
  let below = 0;
  return counts.map((calls, bin) => {
    below += calls;
    const share = Math.min(1, below / total);
    return () => ({
             title: `${time(edge(bin))} to ${time(edge(bin + 1))}`,
             rows: [
               ['Calls', calls > 0 && calls < 0.5 ? 'under 1' : count(calls)],
               ['Share', percent(calls / total)], ['At most this', percent(share)]
             ]
           });
  });
}

function drawHistogram(width, stat) {
  const latency = stat.latency_us || {};
  const all = bounded(stat);
  const [low, high] = logDomain(
      [Math.min(all[0].lower, latency.min || Infinity), all[all.length - 1].upper, latency.max || 0], 0.3,
      1.05);
  const bins = Math.round(Math.min(96, Math.max(28, (width - 60) / 8)));
  const counts = rebin(stat, low, high, bins);
  const total = counts.reduce((a, b) => a + b, 0);
  const edge = (bin) => low * (high / low) ** (bin / bins);
  const marks = percentileMarks(stat);
  const label =
      `Histogram of latency, ${marks.map(({text}) => text).join(', ')}; the arrow keys read it bar by bar`;
  return plot(width, 250 + 16 * marks.length, label, {
    datasets: [{
      type: 'bar',
      data: counts.map((calls, bin) => ({x: edge(bin + 0.5), y: calls / total || null})),
      backgroundColor: colourOf('m-rate'),
      barThickness: Math.max(1, (width - 74) / bins - 1),
      minBarLength: 1.5
    }],
    scales: {
      x: timeAxis('Latency', [low, high], {grid: false}),
      y: axis('% of calls', 0, (maxOf(counts) / total) * 1.05, (value) => trim(value * 100))
    },
    options: {layout: {padding: {top: 10 + 16 * marks.length, right: 14}}},
    over(made) {
      const {right, bottom} = made.chartArea;
      marks.forEach(({us, text}, row) => {
        const x = made.scales.x.getPixelForValue(us);
        const y = 8 + 16 * row;
        const before = x + textWidth(text, 12, 600) + 6 > right + 14;
        drawLine(made, x, y - 6, x, bottom, 'm-ink', [2, 3]);
        drawText(
            made, text, x + (before ? -6 : 6), y, 'm-ink',
            {align: before ? 'right' : 'left', weight: 600, halo: true});
      });
    },
    items: (made) => pointItems(made, barTips(counts, edge))
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
