// Reading values off a chart: by mouse, by touch, and by the arrow keys.

const tipBox = () => document.getElementById('tip');

/** Shows {title, rows: [[label, value, swatch class?]], note?} beside a point of the window. */
function showTip(x, y, tip) {
  const box = tipBox();
  box.replaceChildren(
      el('div', {}, el('div', {class: 'tip-title'}, tip.title),
         el('table', {},
            tip.rows.map(
                ([label, value, mark]) =>
                    el('tr', {}, el('th', {}, mark ? el('span', {class: 'swatch ' + mark}) : null, label),
                       el('td', {}, value)))),
         tip.note ? el('div', {class: 'tip-note'}, tip.note) : null));
  box.hidden = false;
  const gap = 14;
  const {width, height} = box.getBoundingClientRect();
  const right = x + gap + width <= window.innerWidth - 4;
  const left = right ? x + gap : Math.max(4, x - gap - width);
  const top = Math.min(Math.max(4, y - height / 2), Math.max(4, window.innerHeight - height - 4));
  box.style.transform = `translate(${Math.round(left)}px, ${Math.round(top)}px)`;
}

function hideTip() { tipBox().hidden = true; }

const spoken = (tip) => [tip.title, ...tip.rows.map(([label, value]) => `${label} ${value}`)].join(', ');

/**
 * Makes a chart readable point by point. items: [{x, y, tip()}], x and y in pixels of the drawing. nearest(x,
 * y): index of the item for a place of the pointer, or -1. mark(index): shows which one it is; -1 shows none.
 * With `columns` the up and down keys move by as many items.
 */
function explore(root, {items, nearest, mark, columns}) {
  if (!items.length) return root;
  let at = -1;
  const place = () => {
    const box = root.getBoundingClientRect();
    return {box, zoom: root.viewBox ? box.width / root.viewBox.baseVal.width || 1 : 1};
  };
  const go = (index, pointer) => {
    at = index;
    mark(index);
    if (index < 0) return hideTip();
    const {box, zoom} = place();
    const item = items[index];
    const tip = item.tip();
    showTip(
        pointer ? pointer.x : box.left + item.x * zoom, pointer ? pointer.y : box.top + item.y * zoom, tip);
    if (!pointer) document.getElementById('live').textContent = spoken(tip);
    return undefined;
  };
  const onPointer = (event) => {
    const {box, zoom} = place();
    go(nearest((event.clientX - box.left) / zoom, (event.clientY - box.top) / zoom),
       {x: event.clientX, y: event.clientY});
  };
  const step = (by) => go(Math.min(Math.max((at < 0 ? (by > 0 ? -1 : 0) : at) + by, 0), items.length - 1));
  const keys = {
    ArrowLeft: () => step(-1),
    ArrowRight: () => step(1),
    ArrowUp: () => step(-(columns || 1)),
    ArrowDown: () => step(columns || 1),
    PageUp: () => step(-10),
    PageDown: () => step(10),
    Home: () => go(0),
    End: () => go(items.length - 1),
    Escape: () => go(-1),
  };
  root.setAttribute('tabindex', '0');
  root.addEventListener('pointermove', onPointer);
  root.addEventListener('pointerdown', onPointer);
  root.addEventListener('pointerleave', () => go(-1));
  root.addEventListener('blur', () => go(-1));
  root.addEventListener('keydown', (event) => {
    if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    keys[event.key]();
    event.preventDefault();
  });
  return root;
}

/**
 * For the `mark` of explore(): `node` is shown with the attributes that place(index) gives it, or hidden
 * where nothing is read.
 */
function marker(node, place) {
  return (index) => {
    node.setAttribute('visibility', index < 0 ? 'hidden' : 'visible');
    if (index < 0) return;
    Object.entries(place(index)).forEach(([key, value]) => node.setAttribute(key, value));
  };
}

/** Index of the item whose x or y, as `key` says, is nearest to `at`; items are in order of it. */
function nearestBy(items, key, at) {
  const beyond = items.findIndex((item) => item[key] >= at);
  if (beyond <= 0) return beyond < 0 ? items.length - 1 : 0;
  return items[beyond][key] - at < at - items[beyond - 1][key] ? beyond : beyond - 1;
}
