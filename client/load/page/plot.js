// Line and bar charts by Chart.js, in the colours of the page, and read like every other chart: see
// explore.js.

const probe = document.body.appendChild(el('span', {class: 'unseen', 'aria-hidden': true}));

/** The colour that a mark has now, in light or in dark: of a class m-NAME. */
function colourOf(mark, alpha = 1) {
  probe.className = 'unseen probe ' + mark;
  const colour = getComputedStyle(probe).color;
  return alpha === 1 ? colour : colour.replace('rgb(', 'rgba(').replace(')', `, ${alpha})`);
}

const DASHES = {
  dash1: [6, 4],
  dash2: [1.5, 4]
};
const dashOf = (mark) => DASHES[Object.keys(DASHES).find((name) => mark.includes(name))] || [];

/** A straight line in a chart. */
function drawLine({ctx}, x1, y1, x2, y2, mark, dash = [], width = 1) {
  ctx.save();
  ctx.strokeStyle = colourOf(mark);
  ctx.lineWidth = width;
  ctx.setLineDash(dash);
  ctx.beginPath();
  ctx.moveTo(x1, y1);
  ctx.lineTo(x2, y2);
  ctx.stroke();
  ctx.restore();
}

/** A text in a chart; `halo` keeps what is behind it away. */
function drawText({ctx}, text, x, y, mark, {align = 'left', weight = 400, size = 12, halo = false} = {}) {
  ctx.save();
  ctx.font = `${weight} ${size}px ${getComputedStyle(document.body).fontFamily}`;
  ctx.textAlign = align;
  ctx.textBaseline = 'middle';
  if (halo) {
    ctx.strokeStyle = colourOf('m-paper');
    ctx.lineWidth = 5;
    ctx.lineJoin = 'round';
    ctx.strokeText(text, x, y);
  }
  ctx.fillStyle = colourOf(mark);
  ctx.fillText(text, x, y);
  ctx.restore();
}

/**
 * An axis from `min` to `max` of Chart.js: `text(value)` labels its ticks, or undefined for none; `ticks` are
 * the only ones; `more` are options of Chart.js.
 */
function axis(title, min, max, text, {grid = true, ticks = null, ...more} = {}) {
  return {
    type: 'linear',
    min,
    max,
    offset: false,
    title: {display: true, text: title, color: colourOf('m-faint'), padding: 4},
    grid: {
      color: colourOf(grid ? 'm-grid' : 'm-none'),
      borderColor: colourOf(grid ? 'm-none' : 'm-faint'),
      offset: false,
      tickColor: colourOf('m-faint', 0.6),
      tickLength: grid ? 0 : 5
    },
    ticks: {
      color: colourOf('m-soft'),
      padding: 6,
      maxRotation: 0,
      autoSkip: more.axis !== 'y',
      autoSkipPadding: 12,
      includeBounds: false,
      callback: text
    },
    afterBuildTicks(scale) {
      if (ticks) scale.ticks = ticks.map((value) => ({value}));
    },
    ...more
  };
}

/**
 * A logarithmic axis of times, with ticks at 1, 2 and 5 of a decade, all or one where it is short or long.
 */
function timeAxis(title, [low, high], more = {}) {
  const {text, unit} = timeTicks(Math.sqrt(low * high));
  const decades = Math.log10(high / low);
  const shown = decades > 4 ? [1] : decades > 0.9 ? [1, 2, 5] : [1, 2, 3, 4, 5, 6, 7, 8, 9];
  const label = (value) => {
    const digit = value / 10 ** Math.floor(Math.log10(value) + 1e-9);
    return shown.some((one) => Math.abs(digit - one) < 1e-6) ? text(value) : undefined;
  };
  return axis(`${title}, ${unit}, logarithmic`, low, high, label, {type: 'logarithmic', ...more});
}

/** The axis of bars that lie below one another: their names. */
function nameAxis(more = {}) {
  return {
    grid: {display: false, drawBorder: false},
    ticks: {color: colourOf('m-ink'), font: {weight: 600}, padding: 6, autoSkip: false},
    ...more
  };
}

/** A line through {x, y} points, where a y of null is a gap. */
function lineOf(mark, data, more = {}) {
  const colour = colourOf(mark);
  return {
    type: 'line',
    data,
    borderColor: colour,
    backgroundColor: colourOf(mark, 0.14),
    borderDash: dashOf(mark),
    borderWidth: 1.6,
    borderJoinStyle: 'round',
    // A point between gaps is no line: it is a dot.
    pointRadius: ({dataIndex: at}) =>
        ([at - 1, at + 1].some((near) => data[near] && data[near].y !== null) ? 0 : 1.6),
    pointHoverRadius: 4,
    pointBackgroundColor: colour,
    pointBorderWidth: 0,
    pointHoverBackgroundColor: colour,
    pointHoverBorderColor: colourOf('m-paper'),
    ...more
  };
}

/**
 * A chart. `label` is what a screen reader says instead of it; `over(chart)` draws on top of it. items(chart)
 * are what is read one by one: {x, y, tip(), elements: [{datasetIndex, index}] to show}; by their y with
 * `down`, and with `cursor` by a line across.
 */
function plot(width, height, label, {datasets, labels, scales, options, over, items, down, cursor}) {
  const root = el('canvas', {width, height, role: 'img', 'aria-label': label});
  let read = null;
  const made = new Chart(root, {
    data: {datasets, labels},
    options: {
      responsive: false,
      animation: false,
      events: [],  // explore() has them
      devicePixelRatio: printing ? 3 : window.devicePixelRatio,
      font: {family: getComputedStyle(document.body).fontFamily},
      plugins: {legend: {display: false}, tooltip: {enabled: false}},
      scales,
      ...options
    },
    plugins: [{
      id: 'over',
      beforeDatasetsDraw(chart) {
        const {left, right, top, bottom} = chart.chartArea;
        if (read && cursor) drawLine(chart, read.x, top, read.x, bottom, 'm-faint');
        if (read && down) drawLine(chart, left, read.y, right, read.y, 'm-focus', [], read.tall);
      },
      afterDatasetsDraw: over
    }]
  });
  const all = items(made);
  return explore(root, {
    items: all,
    nearest: (x, y) => nearestBy(all, down ? 'y' : 'x', down ? y : x),
    mark(index) {
      read = index < 0 ? null : all[index];
      made.setActiveElements(read ? read.elements || [] : []);
      made.draw();
    }
  });
}

/** What of a chart's first data set is read point by point, with the points of the others beside it. */
function pointItems(made, tips, datasets = [0]) {
  const {data} = made.getDatasetMeta(datasets[0]);
  return tips.map(
      (tip, index) => ({
        x: data[index].x,
        y: data[index].y,
        tip,
        elements: datasets.filter((datasetIndex) => !made.getDatasetMeta(datasetIndex).data[index].skip)
                      .map((datasetIndex) => ({datasetIndex, index}))
      }));
}
