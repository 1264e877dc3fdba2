// Elements, and numbers as text.

const SVG = 'http://www.w3.org/2000/svg';

function add(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === 'on') {
      for (const [event, handler] of Object.entries(value)) node.addEventListener(event, handler);
    } else {
      node.setAttribute(name, value === true ? '' : String(value));
    }
  }
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== '') node.append(child);
  }
  return node;
}

/** An HTML element; texts are texts, never markup. */
const h = (tag, attributes, ...children) =>
  add(document.createElement(tag), attributes, children);

/** An SVG element. */
const s = (tag, attributes, ...children) =>
  add(document.createElementNS(SVG, tag), attributes, children);

const byId = (id) => document.getElementById(id);

/** Replaces what is in a node. */
function fill(node, ...children) {
  node.replaceChildren(...children.flat(Infinity).filter((child) => child !== null));
}

/** Says something to readers who do not see the page. */
function say(text) {
  byId('status').textContent = text;
}

let lastId = 0;
const freshId = (stem) => `${stem}-${++lastId}`;

/** So many digits after the point, without an exponent, with a narrow space every three digits. */
function fixed(value, digits) {
  const [whole, part] = Math.abs(value).toFixed(digits).split('.');
  const spaced = whole.length > 4 ? whole.replace(/\B(?=(\d{3})+$)/g, '\u202f') : whole;
  const sign = value < 0 && Number(value.toFixed(digits)) !== 0 ? '\u2212' : '';
  return sign + spaced + (part ? `.${part}` : '');
}

/** Digits after the point that show `significant` digits of a value. */
function digitsOf(value, significant) {
  if (value === 0 || !Number.isFinite(value)) return 0;
  return Math.min(9, Math.max(0, significant - 1 - Math.floor(Math.log10(Math.abs(value)))));
}

/** A number alone: four significant digits. */
function numberText(value) {
  const size = Math.abs(value);
  if (size >= 1e9 || (size > 0 && size < 1e-6)) return value.toExponential(2);
  return String(fixed(value, digitsOf(value, 4))).replace(/(\.\d*?)0+$/, '$1').replace(/\.$/, '');
}

/** The mean and half of its interval, to the digits that the interval supports. */
function intervalTexts(mean, half) {
  if (half === null || half === undefined) return [numberText(mean), ''];
  if (half === 0) return [numberText(mean), '0'];
  const digits = Math.min(digitsOf(half, 2), digitsOf(mean, 6));
  return [fixed(mean, digits), Number(half.toFixed(digits)) === 0 ? '0' : fixed(half, digits)];
}

const plural = (count, one, many) => `${fixed(count, 0)} ${count === 1 ? one : many || `${one}s`}`;

/** UTC, from seconds since 1970. */
const timeText = (seconds) =>
  seconds > 0 ? new Date(seconds * 1000).toISOString().slice(0, 19).replace('T', ' ') + ' UTC' : '';

/** "/fillers/encoder/arrivals/rate_per_s" as "encoder rate_per_s": what people call an axis. */
function axisName(pointer) {
  const parts = pointer.split('/').slice(1).filter((part) => !/^\d+$/.test(part));
  const plain = parts.filter((part) =>
    !['fillers', 'policies', 'arrivals', 'parameters', 'synth', 'plan'].includes(part));
  return (plain.length > 0 ? plain : parts).slice(-2).join(' ').replaceAll('_', ' ');
}
