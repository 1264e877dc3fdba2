// A timeline that can be zoomed: rows of lanes over one axis, drawn from spans where a view holds
// few of them, else from pixel columns that sim/report/page_parts.cpp made.

const kTimelineLook = { thick: 16, thin: 8, stacked: 13, gap: 2, rowGap: 14, axis: 40 };
const kStackRows = 4;
const kLevels = 4;
/** Spans a pixel that are still drawn one by one. */
const kSpansAPixel = 1.5;
const kSpanText = 6.1;
/** Of a pixel; what covers less is shown by a closer look only (timeline_lanes.hpp). */
const kShownShare = 1 / 16;

function durationText(ns) {
  const size = Math.abs(ns);
  if (size >= 1e9) return `${numberText(ns / 1e9)} s`;
  if (size >= 1e6) return `${numberText(ns / 1e6)} ms`;
  if (size >= 1e3) return `${numberText(ns / 1e3)} \u00b5s`;
  return ns === 0 ? '0' : `${numberText(ns)} ns`;
}

/** Rows of a lane such that spans of one row do not overlap; the last takes what is left. */
function stackOf(lane) {
  const ends = [];
  return Array.from(lane.starts, (start, at) => {
    let row = ends.findIndex((end) => end <= start);
    if (row < 0) row = ends.length < kStackRows ? ends.length : kStackRows - 1;
    ends[row] = Math.max(ends[row] || 0, start + lane.lengths[at]);
    return row;
  });
}

/** A lane with instants in place of gaps. `ends`: the latest of all spans up to one. */
function decodedLane(lane) {
  const count = lane.spans.length / 3;
  const decoded = { label: lane.label, form: lane.form, levels: [], counts: new Map(),
    starts: new Float64Array(count), lengths: new Float64Array(count),
    ends: new Float64Array(count), things: new Uint32Array(count) };
  let end = 0;
  for (let i = 0; i < count; ++i) {
    decoded.starts[i] = end + lane.spans[3 * i];
    decoded.lengths[i] = lane.spans[3 * i + 1];
    decoded.things[i] = lane.spans[3 * i + 2];
    end = decoded.starts[i] + decoded.lengths[i];
    decoded.ends[i] = Math.max(end, i > 0 ? decoded.ends[i - 1] : 0);
  }
  for (let i = 0; i < lane.joined.length; i += 3) {
    decoded.counts.set(lane.joined[i], { count: lane.joined[i + 1], covered: lane.joined[i + 2] });
  }
  for (const level of lane.levels || []) {
    const runs = [];
    let column = 0;
    for (let i = 0; i < level.runs.length; i += 3) {
      column += level.runs[i];
      runs.push({ column, columns: level.runs[i + 1], style: level.runs[i + 2] });
      column += level.runs[i + 1];
    }
    decoded.levels.push({ columns: level.columns, runs });
  }
  decoded.stack = lane.form === 'stacked' ? stackOf(decoded) : null;
  return decoded;
}

/** The chart of chart_json(), ready to be drawn. */
function decodedChart(chart) {
  const rows = chart.rows.map((row) => ({ ...row, lanes: row.lanes.map(decodedLane) }));
  const labels = new Map(chart.kinds.map((kind) => [kind.name, kind.label]));
  return { ...chart, rows, labelOf: (paint) => labels.get(paint),
    nameOf: (thing) => chart.names[thing] || labels.get(chart.paints[thing]) };
}

/** The first place whose value is above `value`, of ascending ones. */
function firstAbove(values, value, key) {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((key ? key(values[middle]) : values[middle]) > value) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Places [from, to) of spans that may be seen between two instants. */
function seenSpans(lane, from, to) {
  return [firstAbove(lane.ends, from), firstAbove(lane.starts, to)];
}

const coveredOf = (lane, at) =>
  (lane.counts.has(at) ? lane.counts.get(at).covered : lane.lengths[at]);
const countOf = (lane, at) => (lane.counts.has(at) ? lane.counts.get(at).count : 1);

/** Horizontal strokes by class: as many elements as there are classes, however many spans. */
class Strokes {
  constructor() {
    this.paths = new Map();
  }

  add(name, left, width, middle) {
    this.paths.set(name, `${this.paths.get(name) || ''}M${round(left)} ${middle}h${round(width)}`);
  }

  parts(height) {
    return [...this.paths].map(([name, d]) =>
      s('path', { class: `stroke ${name}`, 'stroke-width': height, d }));
  }
}

const levelClass = (share) => `l${Math.min(kLevels, Math.max(1, Math.round(share * kLevels)))}`;

function laneHeight(lane) {
  const one = kTimelineLook[lane.form];
  return lane.stack ? one * (Math.max(0, ...lane.stack) + 1) : one;
}

/** Covered shares of pixels by spans that are narrower than one. */
class Pixels {
  constructor() {
    this.shares = new Map();  // paint and row: place of a pixel: share
  }

  add(key, left, share) {
    if (!this.shares.has(key)) this.shares.set(key, new Map());
    const pixels = this.shares.get(key);
    pixels.set(Math.floor(left), (pixels.get(Math.floor(left)) || 0) + share);
  }

  draw(strokes) {
    for (const [key, pixels] of this.shares) {
      const [paint, middle] = key.split(' ');
      for (const [left, share] of pixels) {
        if (share >= kShownShare) strokes.add(`k-${paint} ${levelClass(share)}`, left, 1, middle);
      }
    }
  }
}

function spanParts(chart, lane, x, y, [first, last]) {
  const height = kTimelineLook[lane.form];
  const strokes = new Strokes();
  const pixels = new Pixels();
  const texts = [];
  for (let at = first; at < last; ++at) {
    const left = Math.max(x.left, x.of(lane.starts[at]));
    const width = Math.min(x.right, x.of(lane.starts[at] + lane.lengths[at])) - left;
    if (width < 0 || left > x.right) continue;
    const middle = y + height * (lane.stack ? lane.stack[at] : 0) + height / 2;
    const paint = chart.paints[lane.things[at]];
    const share = lane.lengths[at] > 0 ? coveredOf(lane, at) / lane.lengths[at] : 0;
    if (width < 1) pixels.add(`${paint} ${middle}`, left, width * share);
    else strokes.add(`k-${paint} ${levelClass(share)}`, left, width, middle);
    const room = Math.floor((width - 8) / kSpanText);
    if (lane.form !== 'thick' || room < 7) continue;
    const name = chart.nameOf(lane.things[at]).replace(/^void /, '');
    texts.push(label(left + 4, middle + 4, name.length > room
      ? `${name.slice(0, room - 1)}\u2026` : name, { class: `in k-${paint}` }));
  }
  pixels.draw(strokes);
  return [strokes.parts(lane.stack ? height - 2 : height), texts];
}

function columnParts(chart, lane, level, x, y) {
  const height = kTimelineLook[lane.form];
  const strokes = new Strokes();
  const width = chart.length / level.columns;
  const start = firstAbove(level.runs, x.from / width, (run) => run.column + run.columns);
  for (let i = start; i < level.runs.length; ++i) {
    const { column, columns, style } = level.runs[i];
    if (column * width > x.to) break;
    const left = Math.max(x.left, x.of(column * width));
    const right = Math.min(x.right, x.of((column + columns) * width));
    strokes.add(`k-${chart.kinds[Math.floor(style / kLevels)].name} l${style % kLevels + 1}`,
      left, right - left, y + height / 2);
  }
  return strokes.parts(height);
}

function laneParts(chart, lane, x, y) {
  const seen = seenSpans(lane, x.from, x.to);
  if (seen[1] - seen[0] <= kSpansAPixel * (x.right - x.left) || lane.levels.length === 0) {
    return spanParts(chart, lane, x, y, seen);
  }
  const wanted = (x.right - x.left) * (chart.length / (x.to - x.from));
  const level = lane.levels.find((one) => one.columns >= wanted) || lane.levels.at(-1);
  return columnParts(chart, lane, level, x, y);
}

/** Instant to pixel, within the part of the axis that is seen. */
function timeAxis(view, left, right) {
  const scale = (right - left) / (view.to - view.from);
  return { left, right, from: view.from, to: view.to,
    of: (ns) => left + (ns - view.from) * scale, at: (px) => view.from + (px - left) / scale };
}

function axisParts(x, top, bottom) {
  const span = x.to - x.from;
  const step = niceStep(span, Math.max(2, (x.right - x.left) / 110));
  const [unit, name] = step >= 1e8 && x.to >= 1e9 ? [1e9, 's'] : step >= 1e5 ? [1e6, 'ms']
    : step >= 100 ? [1e3, '\u00b5s'] : [1, 'ns'];
  const digits = Math.max(0, -Math.floor(Math.log10(step / unit) + 1e-9));
  const parts = [];
  for (let tick = Math.ceil(x.from / step - 1e-9) * step; tick <= x.to; tick += step) {
    const at = x.of(tick);
    const anchor = at < x.left + 14 ? 'start' : at > x.right - 14 ? 'end' : 'middle';
    parts.push(line(at, top, at, bottom, 'grid'), label(at, bottom + 16, fixed(tick / unit, digits),
      { class: 'tick', 'text-anchor': anchor }));
  }
  parts.push(line(x.left, bottom, x.right, bottom, 'axis'),
    label(x.right, bottom + 33, `${name} \u2192`, { class: 'title', 'text-anchor': 'end' }));
  return parts;
}

function markParts(row, x, top, bottom) {
  return row.marks.filter((mark) => mark.start <= x.to && mark.start + mark.length >= x.from)
    .flatMap((mark) => {
      const left = Math.max(x.left, x.of(mark.start));
      const right = Math.min(x.right, x.of(mark.start + mark.length));
      const text = `${mark.label}, ${durationText(mark.length)}`;
      const shown = [text, mark.label].find((one) => one.length * kSpanText + 10 < right - left);
      const within = (ns) => ns >= x.from && ns < x.to;
      return [within(mark.start) ? line(left, top, left, bottom, 'mark') : null,
        within(mark.start + mark.length) ? line(right, top, right, bottom, 'mark') : null,
        shown ? label(left + 5, top + 9, shown, { class: 'tick small' }) : null];
    });
}

/** Where rows and lanes lie: y, heights; they do not depend on the time that is seen. */
function timelineLayout(chart, width) {
  const narrow = width < 620;
  const widest = (texts) => Math.max(0, ...texts.map((text) => text.length));
  const lanes = widest(chart.rows.flatMap((row) => row.lanes.map((lane) => lane.label)));
  const rows = Math.max(7.8 * widest(chart.rows.map((row) => row.label)),
    5.8 * widest(chart.rows.map((row) => row.note)));
  const left = narrow ? Math.min(width * 0.3, lanes * 6.6 + 8)
    : Math.min(width * 0.36, lanes * 5.8 + rows + 22);
  const places = [];
  let y = 8;
  for (const row of chart.rows) {
    const top = y;
    if (narrow) y += 18;
    if (row.marks.length > 0) y += 13;
    const below = y;
    for (const lane of row.lanes) {
      places.push({ row, lane, y, top, below, height: laneHeight(lane) });
      y += laneHeight(lane) + kTimelineLook.gap;
    }
    y = Math.max(y, top + (narrow ? 0 : 34)) + kTimelineLook.rowGap;
  }
  return { narrow, left: Math.round(left), right: width - 2, places,
    bottom: y - kTimelineLook.rowGap + 4 };
}

/** Texts at the left, and the ground of the lanes. */
function frameParts(chart, layout) {
  const parts = [];
  let last = null;
  for (const { row, lane, y, top, height } of layout.places) {
    if (row !== last) {
      last = row;
      parts.push(label(0, top + 12, row.label, { class: 'strong' }));
      if (row.note) {
        parts.push(layout.narrow
          ? label(row.label.length * 8.2 + 10, top + 12, row.note, { class: 'tick small' })
          : label(0, top + 27, row.note, { class: 'tick small' }));
      }
    }
    parts.push(
      s('rect', { class: 'ground', x: layout.left, y, width: layout.right - layout.left, height }),
      label(layout.left - 6, y + height / 2 + 3.5, lane.label,
        { class: 'tick small', 'text-anchor': 'end' }));
  }
  return parts;
}

function spanText(chart, place, at) {
  const { row, lane } = place;
  const count = countOf(lane, at);
  const name = chart.nameOf(lane.things[at]);
  const kind = chart.labelOf(chart.paints[lane.things[at]]);
  const what = count > 1 ? `${name} and ${fixed(count - 1, 0)} more` : name;
  return `${what}${what === kind ? '' : ` (${kind})`}\n${row.label}, ${lane.label}\nat ${
    durationText(lane.starts[at])}, ${durationText(lane.lengths[at])} long`;
}

/** What a pixel shows: the longest span, and how many there are. */
function pointedSpan(lane, x, px, row) {
  const [from, to] = [x.at(px - 1.5), x.at(px + 1.5)];
  const [first, last] = seenSpans(lane, from, to);
  let best = -1;
  let count = 0;
  for (let at = first; at < last; ++at) {
    if (lane.starts[at] + lane.lengths[at] < from) continue;
    if (lane.stack && row !== null && lane.stack[at] !== row) continue;
    count += countOf(lane, at);
    if (best < 0 || lane.lengths[at] > lane.lengths[best]) best = at;
  }
  return { best, count };
}

const kTimelineHelp = 'Arrow keys left and right move, plus and minus zoom, 0 shows everything, ' +
  'up and down choose a lane, comma and full stop go from span to span.';

/**
 * A timeline in `container`. `options`: title (of the figure), and view: the part that is seen
 * ({from, to} in ns), which charts may share.
 */
function timelineChart(container, encoded, options) {
  const chart = decodedChart(encoded);
  const view = options.view || { from: 0, to: chart.length };
  const least = Math.max(100, chart.length / 1e7);
  const plot = h('div', { class: 'plot timeline', tabindex: 0, role: 'application', 'aria-label':
    `${options.title}. ${kTimelineHelp}` });
  const seen = h('output', { class: 'seen' });
  const tip = h('div', { class: 'tip', hidden: true });
  let layout = null;
  let x = null;
  let svg = null;
  let halo = null;
  let lanePlace = 0;   // chosen by keys
  let spanPlace = -1;

  function draw(width) {
    layout = timelineLayout(chart, width);
    x = timeAxis(view, layout.left, layout.right);
    const described = freshId('chart');
    const height = layout.bottom + kTimelineLook.axis;
    halo = s('rect', { class: 'halo', visibility: 'hidden' });
    const rows = [...new Map(layout.places.map((place) => [place.row, place])).values()];
    const marks = rows.flatMap((place) => markParts(place.row, x, place.below - 13,
      layout.places.filter((one) => one.row === place.row).at(-1).y + 16));
    svg = s('svg', { width, height, viewBox: `0 0 ${width} ${height}`, role: 'img',
      'aria-label': options.title, 'aria-describedby': described },
    s('desc', { id: described }, `${plural(chart.rows.length, 'row')}, ${
      durationText(view.from)} to ${durationText(view.to)} of ${durationText(chart.length)}.`),
    frameParts(chart, layout), axisParts(x, 4, layout.bottom),
    layout.places.map(({ lane, y }) => laneParts(chart, lane, x, y)), marks, halo);
    fill(plot, svg, tip);
    seen.textContent = `${durationText(view.from)} to ${durationText(view.to)} of ${
      durationText(chart.length)}`;
  }

  const redraw = drawnIn(plot, draw);
  let waiting = false;
  /** At most once a frame, however fast a wheel turns. */
  function show(from, length) {
    const wanted = Math.min(chart.length, Math.max(least, length));
    view.from = Math.max(0, Math.min(from, chart.length - wanted));
    view.to = view.from + wanted;
    hide();
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      redraw();
    });
  }

  const length = () => view.to - view.from;
  const zoom = (factor, around) => show(around - (around - view.from) * factor, length() * factor);
  const center = () => (view.from + view.to) / 2;
  const pan = (share) => show(view.from + share * length(), length());
  const whole = () => show(0, chart.length);

  function hide() {
    tip.hidden = true;
    if (halo) halo.setAttribute('visibility', 'hidden');
  }

  function point(place, at, text, px, aloud) {
    const { lane, y } = place;
    const left = Math.max(x.left, x.of(lane.starts[at]));
    const right = Math.min(x.right, x.of(lane.starts[at] + lane.lengths[at]));
    const top = y + (lane.stack ? lane.stack[at] * kTimelineLook.stacked : 0);
    for (const [name, value] of Object.entries({ x: left - 1, y: top - 1,
      width: Math.max(3, right - left + 2), height: kTimelineLook[lane.form] + 2,
      visibility: 'visible' })) halo.setAttribute(name, value);
    tip.textContent = text;
    tip.hidden = false;
    const middle = px === null ? Math.min(Math.max((left + right) / 2, x.left), x.right) : px;
    tip.style.left = `${Math.max(0, Math.min(middle + 12, plot.clientWidth - tip.offsetWidth))}px`;
    const above = top - tip.offsetHeight - 8;
    tip.style.top = `${above < 0 ? top + kTimelineLook[lane.form] + 10 : above}px`;
    if (aloud) say(text.replaceAll('\n', ', '));
  }

  function hover(event) {
    const box = svg.getBoundingClientRect();
    const [px, py] = [event.clientX - box.left, event.clientY - box.top];
    const place = layout.places.find((one) => py >= one.y - 1 && py < one.y + one.height + 2);
    if (!place || px < x.left || px > x.right) return hide();
    const row = place.lane.stack ? Math.floor((py - place.y) / kTimelineLook.stacked) : null;
    const { best, count } = pointedSpan(place.lane, x, px, row);
    if (best < 0) return hide();
    const more = count > countOf(place.lane, best)
      ? `\nthe longest of ${fixed(count, 0)} here` : '';
    return point(place, best, spanText(chart, place, best) + more, px, false);
  }

  /** The next span of the chosen lane, moved into view. */
  function step(way) {
    const place = layout.places[lanePlace];
    const count = place.lane.starts.length;
    if (count === 0) return say(`${place.row.label}, ${place.lane.label}: empty`);
    const first = seenSpans(place.lane, view.from, view.to)[0];
    spanPlace = spanPlace < 0 ? Math.min(first, count - 1)
      : Math.max(0, Math.min(count - 1, spanPlace + way));
    const start = place.lane.starts[spanPlace];
    if (start < view.from || start > view.to) show(start - length() / 2, length());
    requestAnimationFrame(() => point(place, spanPlace, spanText(chart, place, spanPlace), null,
      true));
    return undefined;
  }

  function chooseLane(way) {
    lanePlace = (lanePlace + way + layout.places.length) % layout.places.length;
    spanPlace = -1;
    step(0);
  }

  const keys = { ArrowLeft: () => pan(-0.2), ArrowRight: () => pan(0.2), PageUp: () => pan(-0.9),
    PageDown: () => pan(0.9), '+': () => zoom(0.5, center()), '=': () => zoom(0.5, center()),
    '-': () => zoom(2, center()), 0: whole, Home: whole, ArrowUp: () => chooseLane(-1),
    ArrowDown: () => chooseLane(1), ',': () => step(-1), '.': () => step(1), Escape: hide };
  plot.addEventListener('keydown', (event) => {
    if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    keys[event.key]();
    event.preventDefault();
  });

  plot.addEventListener('wheel', (event) => {
    const px = event.clientX - svg.getBoundingClientRect().left;
    if (px < x.left || px > x.right) return;  // over the names the page scrolls
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      pan(event.deltaX / (x.right - x.left));
    } else {
      const factor = 1.0015 ** event.deltaY;
      if (factor > 1 && length() >= chart.length) return;
      zoom(factor, x.at(px));
    }
    event.preventDefault();
  }, { passive: false });

  let held = null;  // where a drag began: pointer, and what was seen
  plot.addEventListener('pointerdown', (event) => {
    if (event.button !== 0) return;
    held = { px: event.clientX, from: view.from };
    plot.setPointerCapture(event.pointerId);
  });
  plot.addEventListener('pointermove', (event) => {
    if (held === null) return hover(event);
    const moved = (event.clientX - held.px) / (x.right - x.left);
    return show(held.from - moved * length(), length());
  });
  for (const name of ['pointerup', 'pointercancel']) {
    plot.addEventListener(name, () => {
      held = null;
    });
  }
  plot.addEventListener('pointerleave', hide);
  plot.addEventListener('blur', hide);

  const button = (text, name, handler) => h('button', { type: 'button', title: name,
    'aria-label': name, on: { click: handler } }, text);
  fill(container,
    h('div', { class: 'controls' },
      button('\u2212', 'Zoom out', () => zoom(2, center())),
      button('+', 'Zoom in', () => zoom(0.5, center())),
      button('\u2190', 'Earlier', () => pan(-0.5)), button('\u2192', 'Later', () => pan(0.5)),
      button('All', 'Show everything', whole), seen),
    timelineLegend(chart), plot, timelineTable(chart, options.title));
  return { redraw, view };
}

/** Each paint's covered time in all lanes. */
function paintTimes(chart) {
  const times = new Map();
  for (const { lanes } of chart.rows) {
    for (const lane of lanes) {
      for (let at = 0; at < lane.starts.length; ++at) {
        const paint = chart.paints[lane.things[at]];
        times.set(paint, (times.get(paint) || 0) + coveredOf(lane, at));
      }
    }
  }
  return times;
}

function timelineLegend(chart) {
  const times = paintTimes(chart);
  return h('div', { class: 'legend' }, chart.kinds.filter((kind) => times.has(kind.name))
    .map((kind) => h('span', null,
      s('svg', { class: 'chip', viewBox: '0 0 12 12', 'aria-hidden': 'true' },
        s('path', { class: `stroke k-${kind.name}`, 'stroke-width': 12, d: 'M0 6h12' })),
      kind.label)));
}

function timelineTable(chart, title) {
  const sums = new Map();
  const rows = () => {
    for (const row of chart.rows) {
      for (const lane of row.lanes) {
        for (let at = 0; at < lane.starts.length; ++at) {
          const id = `${row.label}\n${lane.label}\n${lane.things[at]}`;
          const sum = sums.get(id) || { row, lane, thing: lane.things[at], count: 0, ns: 0 };
          sum.count += countOf(lane, at);
          sum.ns += coveredOf(lane, at);
          sums.set(id, sum);
        }
      }
    }
    return [...sums.values()].sort((a, b) => b.ns - a.ns);
  };
  return dataTable(title, [
    { id: 'row', title: 'row', text: (sum) => sum.row.label },
    { id: 'lane', title: 'lane', text: (sum) => sum.lane.label },
    { id: 'kind', title: 'kind', text: (sum) => chart.labelOf(chart.paints[sum.thing]) },
    { id: 'name', title: 'longest', text: (sum) => chart.nameOf(sum.thing), long: true },
    { id: 'slices', title: 'spans', number: true, text: (sum) => fixed(sum.count, 0) },
    { id: 'time', title: 'time', unit: 'ms', number: true,
      text: (sum) => numberText(sum.ns / 1e6) },
  ], rows);
}
