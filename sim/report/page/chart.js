// Scales, axes and the frame of a chart. Lengths are CSS pixels: a chart is drawn as wide as its
// place, so texts stay as large as the page's.

function niceStep(range, count) {
  const rough = range / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(rough));
  const part = rough / power;
  return (part >= 7.5 ? 10 : part >= 3.5 ? 5 : part >= 1.5 ? 2 : 1) * power;
}

function linearScale(low, high, from, to, count) {
  const least = low === high ? low - (Math.abs(low) || 1) * 0.1 : low;
  const most = low === high ? high + (Math.abs(high) || 1) * 0.1 : high;
  const step = niceStep(most - least, count);
  const start = Math.floor(least / step + 1e-9) * step;
  const end = Math.ceil(most / step - 1e-9) * step;
  const ticks = [];
  for (let i = 0; start + i * step <= end + step / 1e6; ++i) ticks.push(start + i * step);
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const scale = (value) => from + ((value - start) / (end - start)) * (to - from);
  return { scale, ticks, text: (value) => fixed(value, digits), log: false };
}

function logScale(low, high, from, to, count) {
  const pad = Math.max(1.03, (high / low) ** 0.03);
  const start = Math.log10(low / pad);
  const end = Math.log10(high * pad);
  const scale = (value) => from + ((Math.log10(value) - start) / (end - start)) * (to - from);
  const steps = [[1, 2, 3, 5, 7], [1, 2, 5], [1, 3], [1]];
  const all = steps.map((digits) => {
    const ticks = [];
    for (let power = Math.floor(start); power <= Math.ceil(end); ++power) {
      for (const digit of digits) {
        const tick = digit * 10 ** power;
        if (Math.log10(tick) >= start && Math.log10(tick) <= end) ticks.push(tick);
      }
    }
    return ticks;
  });
  const ticks = all.find((list) => list.length <= count + 1) || all[3];
  return { scale, ticks, text: numberText, log: true };
}

/** Logarithmic where the values span more than `ratio` and all are above 0. */
function scaleFor(values, from, to, count, ratio) {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  if (!(low <= high)) return linearScale(0, 1, from, to, count);
  return low > 0 && high / low >= ratio ? logScale(low, high, from, to, count)
    : linearScale(low, high, from, to, count);
}

const round = (value) => Math.round(value * 100) / 100;

function line(x1, y1, x2, y2, name) {
  return s('line', { x1: round(x1), y1: round(y1), x2: round(x2), y2: round(y2), class: name });
}

/** A line of which only what lies in the box is drawn; it runs along one of the axes. */
function clipped(box, x1, y1, x2, y2, name) {
  const within = (value, low, high) => Math.max(low, Math.min(high, value));
  const [u1, u2] = [x1, x2].map((value) => within(value, box.left, box.outer));
  const [v1, v2] = [y1, y2].map((value) => within(value, box.top - 6, box.bottom));
  return line(u1, v1, u2, v2, name);
}

function label(x, y, text, attributes) {
  return s('text', { x: round(x), y: round(y), ...attributes }, text);
}

/** Gridlines, ticks and titles of both axes. `box`: left, right, top, bottom. */
function axes(box, x, y, xTitle, yTitle) {
  const parts = [];
  for (const tick of y.ticks) {
    const at = y.scale(tick);
    parts.push(line(box.left, at, box.right, at, 'grid'),
      label(box.left - 7, at + 4, y.text(tick), { class: 'tick', 'text-anchor': 'end' }));
  }
  for (const tick of x.ticks) {
    const at = x.scale(tick);
    parts.push(line(at, box.bottom, at, box.bottom + 4, 'axis'),
      label(at, box.bottom + 18, x.text(tick), { class: 'tick', 'text-anchor': 'middle' }));
  }
  parts.push(line(box.left, box.bottom, box.right, box.bottom, 'axis'));
  const logs = (scale) => (scale.log ? ' (logarithmic)' : '');
  parts.push(
    label(0, box.top - 12, `\u2191 ${yTitle}${logs(y)}`,
      { class: 'title' }),
    label(box.outer, box.bottom + 38, `${xTitle}${logs(x)} \u2192`,
      { class: 'title', 'text-anchor': 'end' }));
  return parts;
}

function overlaps(a, b) {
  return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
}

const textWidth = (text) => text.length * 6.7;

const roomOf = (x, y, u, v, around) => ({ left: Math.min(x, u) - around,
  right: Math.max(x, u) + around, top: Math.min(y, v) - around, bottom: Math.max(y, v) + around });

/** A line in steps through points: its drawing, and the room that it takes. */
function steppedLine(points, acrossFirst) {
  const corners = points.flatMap(([x, y], i) => (i === 0 ? [[x, y]]
    : [acrossFirst ? [x, points[i - 1][1]] : [points[i - 1][0], y], [x, y]]));
  return { parts: points.length < 2 ? [] : [s('path', { class: 'front',
    d: `M${corners.map((corner) => corner.map(round).join(' ')).join('L')}` })],
  room: corners.slice(1).map(([u, v], i) => roomOf(...corners[i], u, v, 2)) };
}

/**
 * Texts beside points where they hide neither points, nor lines, nor each other; those that find
 * no room are left to the legend. `wanted`: x, y, text, policy, most important first.
 */
function placedLabels(wanted, marks, lines, box) {
  const taken = [...lines, ...marks.map(({ x, y }) => roomOf(x, y, x, y, 5))];
  const parts = [];
  for (const { x, y, text, policy } of wanted) {
    const width = textWidth(text);
    const places = [[9, 4, 0], [-9, 4, 1], [9, -8, 0], [9, 16, 0], [-9, -8, 1], [-9, 16, 1],
      [0, -11, 0.5], [0, 20, 0.5], [14, -20, 0], [14, 28, 0], [-14, -20, 1], [-14, 28, 1]];
    for (const [dx, dy, anchor] of places) {
      const left = x + dx - width * anchor;
      const room = { left, right: left + width, top: y + dy - 10, bottom: y + dy + 3 };
      if (room.left < box.left || room.right > box.outer || room.top < box.top - 6 ||
          room.bottom > box.bottom || taken.some((other) => overlaps(room, other))) continue;
      taken.push(room);
      parts.push(label(left, y + dy, text, { class: `label tagged ${hue(policy)}` }));
      break;
    }
  }
  return parts;
}

/** Moves texts apart: least distance `gap`, within top and bottom. Sorted by y. */
function spread(items, gap, top, bottom) {
  items.sort((a, b) => a.y - b.y);
  let last = -Infinity;
  for (const item of items) {
    item.at = Math.max(item.y, last + gap);
    last = item.at;
  }
  let next = bottom + gap;
  for (let i = items.length - 1; i >= 0; --i) {
    items[i].at = Math.max(top, Math.min(items[i].at, next - gap));
    next = items[i].at;
  }
  return items;
}

/** Draws when there is a width, and again when it changes. */
function drawnIn(container, draw) {
  let width = 0;
  const redraw = () => {
    const now = Math.floor(container.clientWidth);
    if (now > 0 && now !== width) {
      width = now;
      draw(now);
    }
  };
  if (typeof ResizeObserver === 'function') new ResizeObserver(redraw).observe(container);
  return () => {
    width = 0;
    redraw();
  };
}
