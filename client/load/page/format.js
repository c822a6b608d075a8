// Numbers as text: three digits, the right prefix, a space that does not break before the unit.

const NBSP = '\u00a0';
const DASH = '\u2013';

/** The number, or null for everything that is none: absent fields, null, text. */
function num(value) { return typeof value === 'number' && Number.isFinite(value) ? value : null; }

/** Three significant digits, no exponent: 0.0123, 1.23, 12.3, 123, 1,234. */
function digits(value) {
  const size = Math.abs(value);
  if (size === 0) return '0';
  if (size >= 99.95) return Math.round(value).toLocaleString('en-US');
  return value.toFixed(
      size >= 9.995      ? 1 :
          size >= 0.9995 ? 2 :
                           Math.min(12, 2 - Math.floor(Math.log10(size))));
}

const SI = [[1e15, 'P'], [1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e3, 'k']];

/** {factor, prefix} that writes values up to `size` with few digits before the point. */
function siPrefix(size) {
  const found = SI.find(([factor]) => size >= factor * 0.9995);
  return found ? {factor: found[0], prefix: found[1]} : {factor: 1, prefix: ''};
}

function si(value, unit = '') {
  if (num(value) === null) return DASH;
  const {factor, prefix} = siPrefix(Math.abs(value));
  const space = prefix || (unit && !unit.startsWith('/')) ? NBSP : '';
  return digits(value / factor) + space + prefix + unit;
}

const rate = (value) => si(value, 'B/s');
const perSecond = (value) => si(value, '/s');

/** Counts: exact up to 99,999, then with a prefix. */
function count(value) {
  if (num(value) === null) return DASH;
  return Math.abs(value) < 1e5 ? Math.round(value).toLocaleString('en-US') : si(value);
}

const exact = (value) => (num(value) === null ? DASH : Math.round(value).toLocaleString('en-US'));

/** Sizes, by powers of 1024. */
function size(value) {
  if (num(value) === null) return DASH;
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  let at = 0;
  let left = value;
  while (Math.abs(left) >= 1024 && at + 1 < units.length) {
    left /= 1024;
    at += 1;
  }
  return (Number.isInteger(left) ? left.toLocaleString('en-US') : digits(left)) + NBSP + units[at];
}

const TIME = [[1e6, 's'], [1e3, 'ms'], [1, 'µs'], [1e-3, 'ns']];

/** {factor, unit} for microseconds of about this size. */
function timeUnit(us) {
  const found = TIME.find(([factor]) => Math.abs(us) >= factor * 0.9995) || TIME[us === 0 ? 2 : 3];
  return {factor: found[0], unit: found[1]};
}

/** A time in microseconds. */
function time(us) {
  if (num(us) === null) return DASH;
  const {factor, unit} = timeUnit(us);
  return digits(us / factor) + NBSP + unit;
}

/** A time of 0 means that nothing was measured. */
const timeOrNone = (us) => (num(us) ? time(us) : DASH);

/** A length of time in seconds, as people say it. */
function seconds(value) {
  if (num(value) === null) return DASH;
  if (value < 120) return time(value * 1e6);
  const whole = Math.round(value);
  const parts = [[Math.floor(whole / 3600), 'h'], [Math.floor(whole / 60) % 60, 'min'], [whole % 60, 's']];
  return parts.filter(([n]) => n > 0).map(([n, unit]) => n + NBSP + unit).join(' ');
}

/** Two digits that count: also of what is missing, so 99.34% and not 99%. */
function percent(share) {
  if (num(share) === null) return DASH;
  const value = share * 100;
  if (share > 0.985 && share < 1)
    return value.toFixed(Math.min(4, Math.ceil(-Math.log10(1 - share)) - 1)) + '%';
  return (value === 0 || Math.abs(value) >= 9.95 ? value.toFixed(0) : value.toPrecision(2)) + '%';
}

/** A text as a sentence: with a capital and a full stop. */
const sentence = (text) =>
    (text ? text[0].toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? '' : '.') : '');

/** " ± 1.2%": how much single measurements vary; nothing where that is not known. */
const noiseText = (share) => (num(share) === null ? '' : `${NBSP}±${NBSP}${percent(share)}`);

const factor = (value) => (num(value) === null ? DASH : value.toFixed(value < 9.95 ? 2 : 1) + '×');

const shapeText = (shape) => (Array.isArray(shape) && shape.length ? shape.join('×') : '');

/** "p99_9" → "p99.9", 99.9 → "p99.9". */
const percentileName = (key) => (typeof key === 'number' ? `p${key}` : String(key).replace('_', '.'));
