// Where the server's time goes: mean time of each stage, stacked, one bar an operation.

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

/** A stage's bar has its name and time inside where they fit. */
function stageTexts(made, rows, used) {
  rows.forEach((row, index) => row.parts.forEach(({stage, us}) => {
    const {x, base, y} = made.getDatasetMeta(used.indexOf(stage)).data[index];
    const text =
        [`${stage} ${time(us)}`, time(us), stage].find((one) => textWidth(one, 11, 600) + 10 <= x - base);
    if (text)
      drawText(
          made, text, (x + base) / 2, y,
          isLight(colourOf('m-' + stage).match(/\d+/g).map(Number)) ? 'm-dark' : 'm-light',
          {align: 'center', weight: 600, size: 11});
  }));
}

function drawStages(width, rows, share, used) {
  const narrow = width < 640;
  const ends =
      rows.map((row) => `${time(row.sum)}${row.overlap === null ? '' : ` · ${factor(row.overlap)}`}`);
  const high = share ? 100 : Math.max(...rows.map((row) => Math.max(row.sum, row.mean || 0)));
  const ticks = timeTicks(high);
  const scaled = (row, us) => (share ? (100 * us) / row.sum : us);
  const pitch = narrow ? 50 : 34;
  return plot(
      width, rows.length * pitch + 56,
      'Mean time of each stage by operation; the arrow keys read it bar by bar', {
        labels: rows.map(({name}) => fitText(name, narrow ? 1 : 250, 12, 600)),
        datasets: used.map((stage) => ({
                             type: 'bar',
                             label: stage,
                             data: rows.map((row) => {
                               const part = row.parts.find((one) => one.stage === stage);
                               return part ? scaled(row, part.us) : null;
                             }),
                             backgroundColor: colourOf('m-' + stage),
                             borderColor: colourOf('m-paper'),
                             borderWidth: {right: 1},
                             barThickness: 24
                           })),
        scales: {
          x: axis(
              share ? 'Share of the sum of the stages, %' : `Mean time, ${ticks.unit}`, 0, high,
              share ? trim : ticks.text, {grid: false, stacked: true}),
          y: nameAxis({stacked: true, display: !narrow})
        },
        options: {
          indexAxis: 'y',
          layout: {padding: {right: Math.max(...ends.map((text) => textWidth(text))) + 12}}
        },
        over(made) {
          stageTexts(made, rows, used);
          rows.forEach((row, index) => {
            const x = (us) => made.scales.x.getPixelForValue(scaled(row, us));
            const y = made.scales.y.getPixelForValue(index);
            const marked = !share && row.mean > 0;
            for (const side of marked ? [-1, 1] : [])
              drawLine(made, x(row.mean), y + side * 8, x(row.mean), y + side * 17, 'm-ink', [], 2);
            drawText(made, ends[index], x(Math.max(row.sum, marked ? row.mean : 0)) + 8, y, 'm-soft');
            if (narrow)
              drawText(
                  made, fitText(row.name, width - 10, 12, 600), made.chartArea.left, y - 20, 'm-ink',
                  {weight: 600});
          });
        },
        down: true,
        items: ({scales, chartArea}) => rows.map((row, index) => ({
                                                   x: (chartArea.left + chartArea.right) / 2,
                                                   y: scales.y.getPixelForValue(index),
                                                   tall: pitch,
                                                   tip: () => stageTip(row)
                                                 })),
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
        'Mean time of each stage of a call; other: none of them ran. Stages run at once, so their sum may be longer than the call took: the upright marks are the ' +
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
      const redraw = chart(host, 'stages', (width) => drawStages(width, rows, share, used));
    },
  };
}
