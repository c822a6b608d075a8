// From values to pixels, and the ticks that say so.

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
