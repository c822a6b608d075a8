// The ramp: latency at each offered rate, and the highest rate that was held.

function rampTip(step, name) {
  return {
    title: perSecond(step.rate) + ' offered',
    rows: [
      ...(num(step.achieved) === null ? [] : [['Achieved', perSecond(step.achieved)]]),
      [name, timeOrNone(step.p99_us)], ['Held', step.held ? 'yes' : 'no']
    ],
  };
}

function drawRamp(width, steps, mode) {
  const left = 50;
  const right = width - 20;
  const top = 44;
  const bottom = top + 240;
  const frame = {left, right, top, bottom};
  const bound = num(mode.bound_us);
  const name = percentileName(mode.percentile || 'p99');
  const [low, high] = logDomain([...steps.map((step) => step.p99_us), bound || 0], 0.6, 1.25);
  const x = linear(0, Math.max(...steps.map((step) => step.rate)) * 1.04, left, right);
  const y = logarithmic(low, high, bottom, top);
  const ticks = timeTicks(Math.sqrt(low * high));
  const rates = rateTicks(Math.max(...steps.map((step) => step.rate)), '/s');
  const best = num(mode.best_rate);
  const place = (step) => ({x: x(step.rate), y: step.p99_us > 0 ? y(step.p99_us) : bottom});
  const ring = svg('circle', {class: 'ring', r: 9, visibility: 'hidden'});
  const cross = ({x: cx, y: cy}) => `M${px(cx - 5)} ${px(cy - 5)}l10 10m0 -10l-10 10`;
  const root = canvas(
      width, bottom + 42, 'Latency by offered rate; the arrow keys read it step by step', axisLeft({
        ...frame,
        top: top - 14,
        scale: y,
        ticks: y.ticks(7),
        text: ticks.text,
        unit: `${name}, ${ticks.unit}, logarithmic`
      }),
      axisBottom({
        ...frame,
        scale: x,
        ticks: x.ticks(width / 90),
        text: rates.text,
        title: `Calls offered, ${rates.unit}`
      }),
      bound ?
          svg('g', {'data-bound': ''},
              svg('line', {class: 'bound', x1: left, x2: right, y1: px(y(bound)), y2: px(y(bound))}),
              svg('text', {class: 'boundname', x: left + 6, y: px(y(bound)) - 6}, `bound ${time(bound)}`)) :
          null,
      best ? svg('g', {class: 'percentile', 'data-best': ''},
                 svg('line', {x1: px(x(best)), x2: px(x(best)), y1: top - 8, y2: bottom}),
                 svg('text', {x: px(Math.min(x(best), right - 60)), y: top - 14, 'text-anchor': 'middle'},
                     `${perSecond(best)} held`)) :
             null,
      svg('path', {class: 'line m-quiet', d: linePath(steps.map((step) => [place(step).x, place(step).y]))}),
      steps.map(
          (step) =>
              (step.held ? svg('circle',
                               {class: 'dot m-held', cx: px(place(step).x), cy: px(place(step).y), r: 5.5}) :
                           svg('path', {class: 'line m-missed', d: cross(place(step))}))),
      ring);
  const items = steps.map((step) => ({...place(step), tip: () => rampTip(step, name)}));
  return exploreAlong(
      root, items, marker(ring, (index) => ({cx: px(items[index].x), cy: px(items[index].y)})));
}

function rampSection(data) {
  const steps = list(data.ramp).filter((step) => num(step.rate) !== null).sort((a, b) => a.rate - b.rate);
  if (!steps.length) return null;
  return {
    id: 'ramp',
    title: 'Ramp',
    note: 'Each step offers calls at a fixed rate, whether or not the ones before have ended.',
    build(body) {
      const host = el('div', {class: 'plot'});
      body.append(
          legend([{name: 'held', mark: 'round m-held'}, {name: 'not held', mark: 'crossed m-missed'}]), host);
      chart(host, 'ramp', (width) => drawRamp(width, steps, data.mode || {}));
    },
  };
}
