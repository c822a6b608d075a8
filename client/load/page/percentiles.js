// The latency at every percentile: where the tail begins, and whose it is.

const TAIL = [0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999999];
const CURVE_COLOURS = 7;

/** -log10 of the share that is slower: 0 at 0%, 1 at 90%, 2 at 99%. */
const nines = (share) => -Math.log10(Math.max(1e-12, 1 - share));

/** [[nines, latency]…] of a Stat, from its histogram, as far as two calls lie beyond. */
function curveOf(stat) {
  const found = buckets(stat);
  const total = found.reduce((sum, [, calls]) => sum + calls, 0);
  const latency = stat.latency_us || {};
  const points = [[0, num(latency.min) || found[0][0]]];
  const end = Math.max(0.5, 1 - 2 / total);
  let below = 0;
  for (const [upper, calls] of found) {
    below += calls;
    points.push(
        [nines(Math.min(below / total, end)), latency.max > 0 ? Math.min(upper, latency.max) : upper]);
    if (below / total >= end) break;
  }
  return points;
}

/** Latency of a curve at so many nines, or null beyond its end. */
function curveAt(points, at) {
  if (at > points[points.length - 1][0] + 1e-9) return null;
  const next = points.find(([x]) => x >= at - 1e-9);
  return next ? next[1] : null;
}

function curvesOf(data) {
  const operations = list(data.operations);
  const total = data.total || {};
  const curves = (operations.length > 1 ? operations : [])
                     .filter((stat) => buckets(stat).length)
                     .map((stat, index) => ({
                            name: stat.name,
                            mark: `m-s${index % CURVE_COLOURS} dash${Math.floor(index / CURVE_COLOURS) % 3}`,
                            points: curveOf(stat),
                            on: true
                          }));
  if (buckets(total).length)
    curves.push({name: 'all calls', mark: 'm-total', points: curveOf(total), on: true});
  const service = total.service_us || {};
  const latency = total.latency_us || {};
  if (service.p99 > 0 && latency.p99 > service.p99 * 1.05) {
    const shares = [['p50', 0.5], ['p90', 0.9], ['p99', 0.99], ['p99_9', 0.999]];
    curves.push({
      name: 'all calls, from the actual start',
      mark: 'm-service dash1',
      on: true,
      points: [[0, service.min], ...shares.map(([key, share]) => [nines(share), service[key]])].filter(
          ([, us]) => us > 0)
    });
  }
  return curves;
}

function percentileTip(curves, at) {
  const share = 1 - 10 ** -at;
  const rows = curves.map((curve) => ({curve, us: curveAt(curve.points, at)}))
                   .filter(({us}) => us !== null)
                   .sort((a, b) => b.us - a.us);
  const left = rows.length - 12;
  return {
    title: `${(share * 100).toFixed(Math.max(0, Math.min(4, Math.ceil(at - 1e-9))))}% of calls took at most`,
    rows: rows.slice(0, 12).map(({curve, us}) => [curve.name, time(us), curve.mark]),
    note: left > 0 ? `and ${left} more` : '',
  };
}

function drawPercentiles(width, all) {
  const curves = all.filter((curve) => curve.on);
  const far = Math.max(1, ...all.map((curve) => curve.points[curve.points.length - 1][0]));
  const marks = [0, ...TAIL.map(nines)].filter((at) => at <= far + 1e-9);
  const steps = Math.max(24, Math.round(width / 6));
  const shares = [...new Set([...Array.from({length: steps + 1}, (_, i) => (i / steps) * far), ...marks])];
  return plot(width, 330, 'Latency by percentile; the arrow keys read it step by step', {
    datasets: curves.map(
        (curve) => lineOf(
            curve.mark, curve.points.map(([x, y]) => ({x, y})),
            {label: curve.name, borderWidth: curve.mark === 'm-total' ? 2.6 : 1.6, pointHoverRadius: 0})),
    scales: {
      x: axis(
          'Share of calls, %', 0, far, (at) => trim(Number(((1 - 10 ** -at) * 100).toFixed(5))),
          {ticks: marks}),
      y: timeAxis('Latency', logDomain(all.flatMap((curve) => curve.points.map(([, us]) => us)), 0.4, 1.08))
    },
    cursor: true,
    items: ({scales, chartArea}) =>
        shares.sort((a, b) => a - b).map((at) => ({
                                           x: scales.x.getPixelForValue(at),
                                           y: (chartArea.top + chartArea.bottom) / 2,
                                           tip: () => percentileTip(curves, at)
                                         })),
  });
}

function percentilesSection(data) {
  if (data.kind === 'study') return null;  // its total mixes settings
  const curves = curvesOf(data);
  if (!curves.length) return null;
  return {
    id: 'percentiles',
    title: 'Latency by percentile',
    note: 'Each step to the right leaves ten times fewer calls.' +
        (curves.some((curve) => curve.mark.startsWith('m-service')) ?
             ' The gap between the solid and the dashed line is time that calls waited before they were started.' :
             ''),
    build(body) {
      const host = el('div', {class: 'plot'});
      body.append(host);
      const redraw = chart(host, 'percentiles', (width) => drawPercentiles(width, curves));
      const toggle = (curve) =>
          el('button', {
            type: 'button',
            'aria-pressed': 'true',
            onclick(event) {
              curve.on = !curve.on;
              event.currentTarget.setAttribute('aria-pressed', String(curve.on));
              redraw();
            }
          },
             el('span', {class: 'stroke ' + curve.mark}), curve.name);
      if (curves.length > 1)
        body.append(
            el('div', {class: 'toggles', role: 'group', 'aria-label': 'Curves shown'}, curves.map(toggle)));
    },
  };
}
