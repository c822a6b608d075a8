// The ramp: latency at each offered rate, and the highest rate that was held.

function rampTip(step, name) {
  return {
    title: perSecond(step.rate) + ' offered',
    rows: [
      ...(num(step.achieved) === null ? [] : [['Achieved', perSecond(step.achieved)]]),
      step.p99_us > 0 ? [name, time(step.p99_us)] : ['Longest', timeOrNone(step.max_us)],
      ['Held', step.held ? 'yes' : 'no']
    ],
  };
}

function drawRamp(width, steps, mode) {
  const bound = num(mode.bound_us);
  const name = percentileName(mode.percentile || 'p99');
  const best = num(mode.best_rate);
  const most = Math.max(...steps.map((step) => step.rate));
  const rates = rateTicks(most, '/s');
  const latency = (step) => num(step.p99_us) || num(step.max_us) || 0;  // too few calls tell no percentile
  const domain = logDomain([...steps.map(latency), bound || 0], 0.6, 1.25);
  const marks = [best ? `${perSecond(best)} held` : '', bound ? `bound ${time(bound)}` : ''];
  const held = (yes, no) => steps.map((step) => (step.held ? yes : no));
  return plot(
      width, 320,
      ['Latency by offered rate', ...marks.filter(Boolean)].join(', ') +
          '; the arrow keys read it step by step',
      {
        datasets: [lineOf('m-quiet', steps.map((step) => ({x: step.rate, y: latency(step) || domain[0]})), {
          borderWidth: 2,
          pointStyle: held('circle', 'crossRot'),
          pointRadius: held(5.5, 7),
          pointHoverRadius: 9,
          pointBorderWidth: held(1.5, 2.2),
          pointBackgroundColor: colourOf('m-held'),
          pointHoverBackgroundColor: colourOf('m-held'),
          pointBorderColor: held(colourOf('m-paper'), colourOf('m-missed')),
          pointHoverBorderColor: held(colourOf('m-ink'), colourOf('m-missed'))
        })],
        scales: {
          x: axis(`Calls offered, ${rates.unit}`, 0, most * 1.04, rates.text, {grid: false}),
          y: timeAxis(name, domain)
        },
        options: {layout: {padding: {top: 24, right: 20}}, clip: false},
        over(made) {
          const {left, right, top, bottom} = made.chartArea;
          if (bound) {
            const y = made.scales.y.getPixelForValue(bound);
            drawLine(made, left, y, right, y, 'm-missed', [6, 4]);
            drawText(made, marks[1], left + 6, y - 9, 'm-missed');
          }
          if (!best) return;
          const x = made.scales.x.getPixelForValue(best);
          drawLine(made, x, top - 6, x, bottom, 'm-ink', [2, 3]);
          drawText(
              made, marks[0], Math.min(x, right - 60), top - 14, 'm-ink', {align: 'center', weight: 600});
        },
        items: (made) => pointItems(made, steps.map((step) => () => rampTip(step, name)))
      });
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
