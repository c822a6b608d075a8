// Making elements, and charts that draw themselves again when their width changes.

const SVG = 'http://www.w3.org/2000/svg';

function fill(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith('on'))
      node.addEventListener(key.slice(2), value);
    else
      node.setAttribute(key, value === true ? '' : value);
  }
  node.append(
      ...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== ''));
  return node;
}

/** An HTML element. Children are nodes or text, never markup. */
function el(name, attributes, ...children) {
  return fill(document.createElement(name), attributes, children);
}

/** An SVG element. */
function svg(name, attributes, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

/** The root of a chart. `label` is what a screen reader says instead of it. */
function canvas(width, height, label, ...children) {
  return svg(
      'svg', {viewBox: `0 0 ${width} ${height}`, width, height, role: 'img', 'aria-label': label},
      ...children);
}

const px = (value) => Math.round(value * 10) / 10;

const ruler = document.createElement('canvas').getContext('2d');

/** Width of a text in a chart, in pixels. */
function textWidth(text, fontSize = 12, weight = 400) {
  ruler.font = `${weight} ${fontSize}px ${getComputedStyle(document.body).fontFamily}`;
  return ruler.measureText(text).width;
}

/** The text, cut with an ellipsis where it is wider than `width`. */
function fitText(text, width, fontSize = 12, weight = 400) {
  if (textWidth(text, fontSize, weight) <= width) return text;
  let cut = text;
  while (cut.length > 1 && textWidth(cut + '…', fontSize, weight) > width) cut = cut.slice(0, -1);
  return cut + '…';
}

/**
 * Moves positions apart until they are `gap` apart, staying in order and within [low, high] where there is
 * room.
 */
function spread(positions, gap, low, high) {
  const order = positions.map((at, index) => ({at, index})).sort((a, b) => a.at - b.at);
  for (let i = 0; i < order.length; i += 1) {
    order[i].at = Math.max(order[i].at, i === 0 ? low : order[i - 1].at + gap);
  }
  for (let i = order.length - 1; i >= 0; i -= 1) {
    order[i].at = Math.min(order[i].at, i === order.length - 1 ? high : order[i + 1].at - gap);
  }
  const out = [];
  for (const {at, index} of order) out[index] = at;
  return out;
}

const charts = [];
const PAPER = 680;
let printing = false;

/**
 * Fills `host`, which stands in the page, with what `draw(width)` returns, now and whenever its width
 * changes. Returns a function that draws again with what has changed since.
 */
function chart(host, name, draw) {
  host.dataset.chart = name;
  let drawn = 0;
  const render = (width) => {
    drawn = width;
    hideTip();
    host.querySelectorAll('canvas').forEach((old) => Chart.getChart(old).destroy());
    host.replaceChildren(draw(width));
  };
  const measured = () => Math.max(240, Math.floor(host.clientWidth));
  render(measured());
  const follow = () => {
    if (!printing && host.clientWidth > 0 && measured() !== drawn) render(measured());
  };
  // Not at once: what is drawn may bring or take away a scroll bar, and the observer would see that as a
  // loop.
  new ResizeObserver(() => requestAnimationFrame(follow)).observe(host);
  charts.push({paper: () => render(PAPER), screen: () => render(measured())});
  return () => render(measured());
}

/**
 * What is drawn on a canvas keeps its colours: on paper the light ones, on the screen as the reader likes.
 */
function putOn(paper) {
  printing = paper;
  document.documentElement.toggleAttribute('data-paper', paper);
  charts.forEach((one) => (paper ? one.paper() : one.screen()));
}
window.addEventListener('beforeprint', () => putOn(true));
window.addEventListener('afterprint', () => putOn(false));
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => putOn(printing));

/** Colour keys: [{name, mark}], where mark is the class of the swatch. */
function legend(entries) {
  return el(
      'ul', {class: 'legend'},
      entries.map(({name, mark}) => el('li', {}, el('span', {class: 'swatch ' + mark}), name)));
}

let groups = 0;

/** Radio buttons in a row. `choose(value)` is called on every change. */
function segments(label, options, chosen, choose) {
  groups += 1;
  const group = `group${groups}`;
  return el(
      'fieldset', {class: 'segments'}, el('legend', {class: 'unseen'}, label),
      options.map(
          ({value, text}) =>
              el('label', {}, el('input', {
                   type: 'radio',
                   name: group,
                   value,
                   checked: value === chosen,
                   onchange: () => choose(value)
                 }),
                 el('span', {}, text))));
}

/** A labelled drop-down list. `choose(index)` is called on every change. */
function selector(label, options, chosen, choose) {
  return el(
      'label', {class: 'selector'}, el('span', {}, label),
      el('select', {onchange: (event) => choose(Number(event.target.value))},
         options.map((text, index) => el('option', {value: index, selected: index === chosen}, text))));
}
