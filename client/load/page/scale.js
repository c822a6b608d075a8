// From values to pixels, and the axes that say so.

/** A linear scale from [low, high] to [from, to]; `.ticks(n)` are about n round values. */
function linear(low, high, from, to) {
  const span = high - low || 1;
  const scale = (value) => from + ((value - low) / span) * (to - from);
  scale.invert = (at) => low + ((at - from) / (to - from)) * span;
  scale.ticks = (wanted) => {
    const raw = span / Math.max(1, wanted);
    const power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= raw * 0.999) || 10 * power;
    const ticks = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i += 1) ticks.push(i * step);
    return ticks;
  };
  return scale;
}

/**
 * A logarithmic scale; low and high are over 0. Ticks are 1, 2, 5 of each decade, fewer where there are
 * many.
 */
function logarithmic(low, high, from, to) {
  const a = Math.log(low);
  const span = Math.log(high) - a || 1;
  const scale = (value) => from + ((Math.log(value) - a) / span) * (to - from);
  scale.invert = (at) => Math.exp(a + ((at - from) / (to - from)) * span);
  scale.ticks = (wanted) => {
    const choices = [[1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9], [1, 2, 3, 5, 7], [1, 2, 5], [1, 3], [1]];
    let ticks = [];
    for (const choice of choices) {
      ticks = [];
      for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += 1) {
        for (const n of choice) {
          const tick = Number((n * 10 ** power).toPrecision(6));
          if (tick >= low * 0.9999 && tick <= high * 1.0001) ticks.push(tick);
        }
      }
      if (ticks.length <= wanted) return ticks;
    }
    const every = Math.ceil(ticks.length / wanted);
    return ticks.filter((_, index) => index % every === 0);
  };
  return scale;
}

/** A domain for a logarithmic scale around the values that are over 0; at least `decades` wide. */
function logDomain(values, decades = 0.5, pad = 1.15) {
  const positive = values.filter((value) => value > 0);
  if (!positive.length) return [1, 10];
  let low = positive.reduce((a, b) => Math.min(a, b));
  let high = positive.reduce((a, b) => Math.max(a, b));
  const short = decades - Math.log10(high / low);
  if (short > 0) {
    low /= 10 ** (short / 2);
    high *= 10 ** (short / 2);
  }
  return [low / pad, high * pad];
}

const maxOf = (values) => values.reduce((a, b) => (b !== null && b > a ? b : a), 0);

/** Text of ticks of one axis, all with the same unit: {text(value), unit}. */
function rateTicks(high, unit = 'B/s') {
  const {factor: by, prefix} = siPrefix(high);
  return {text: (value) => trim(value / by), unit: prefix + unit};
}

function timeTicks(high) {
  const {factor: by, unit} = timeUnit(high);
  return {text: (value) => trim(value / by), unit};
}

/** A tick's value has few digits by nature; this only hides rounding. */
function trim(value) {
  return Number(value.toPrecision(6)).toLocaleString('en-US', {maximumFractionDigits: 9});
}

/** Horizontal grid lines with their labels left of them; `unit` stands above the highest. */
function axisLeft({left, right, scale, ticks, text, unit, top}) {
  return svg(
      'g', {class: 'axis'}, ticks.map((tick) => {
        const y = px(scale(tick));
        return [
          svg('line', {class: 'grid', x1: left, x2: right, y1: y, y2: y}),
          svg('text', {x: left - 8, y: y + 4, 'text-anchor': 'end'}, text(tick))
        ];
      }),
      unit ? svg('text', {class: 'unit', x: 0, y: top - 12}, unit) : null);
}

/** Ticks below a chart. Labels that would touch the one before are left out. */
function axisBottom({left, right, bottom, top, scale, ticks, text, grid, title}) {
  let free = -Infinity;
  const parts = [svg('line', {class: 'base', x1: left, x2: right, y1: bottom, y2: bottom})];
  for (const tick of ticks) {
    const x = px(scale(tick));
    if (x < left - 1 || x > right + 1) continue;
    const label = text(tick);
    const half = textWidth(label) / 2;
    parts.push(
        svg('line', {class: grid ? 'grid' : 'tick', x1: x, x2: x, y1: grid ? top : bottom, y2: bottom + 4}));
    if (x - half < free) continue;
    free = x + half + 10;
    parts.push(svg('text', {x, y: bottom + 18, 'text-anchor': 'middle'}, label));
  }
  if (title) {
    parts.push(
        svg('text', {class: 'unit', x: (left + right) / 2, y: bottom + 36, 'text-anchor': 'middle'}, title));
  }
  return svg('g', {class: 'axis'}, parts);
}

/** Path through [x, y] points; a point whose y is null ends one piece of the line. */
function linePath(points) {
  let pen = 'M';
  let path = '';
  for (const [x, y] of points) {
    if (y === null) {
      pen = 'M';
      continue;
    }
    path += `${pen}${px(x)} ${px(y)}`;
    pen = 'L';
  }
  return path;
}
