// What training keeps against what the filler gains, and the latter against the latency.

const kShortest = 0.2; // of a full trial: shorter ones are drawn small
const kLatencySteps = 4;

/** Upper ends of the colours of p95: quarters of the limit, else of the points. */
function latencyEnds(answer, points) {
  if (answer.limits.p95_ns !== null) {
    const limit = answer.limits.p95_ns / 1e6;
    return Array.from({ length: kLatencySteps }, (_, i) => (limit * (i + 1)) / kLatencySteps);
  }
  const all = points.filter((one) => one.p95 !== null && !one.overloaded)
    .map((one) => one.p95).sort((a, b) => a - b);
  return Array.from({ length: kLatencySteps }, (_, i) =>
    all[Math.min(all.length - 1, Math.ceil((all.length * (i + 1)) / kLatencySteps) - 1)]);
}

function latencyClass(point, ends) {
  if (point.overloaded || point.p95 === null) return 'qx';
  const step = ends.findIndex((end) => point.p95 <= end);
  return step < 0 ? 'qx' : `q${step}`;
}

function latencyLegend(answer, ends) {
  const chip = (name, text) => h('span', null, s('svg', { class: `chip ${name}`,
    viewBox: '0 0 12 12', 'aria-hidden': 'true' }, s('circle', { cx: 6, cy: 6, r: 5,
    fill: 'var(--c)' })), text);
  const beyond = answer.limits.p95_ns === null ? 'overloaded' : 'beyond the limit, or overloaded';
  return h('div', { class: 'legend' }, 'p95: ', ends.map((end, i) =>
    chip(`q${i}`, `${i === 0 ? 'up to' : '\u2264'} ${numberText(end)} ms`)), chip('qx', beyond));
}

function policyLegend(answer, points) {
  const used = [...new Set(points.map((point) => point.policy))];
  return h('div', { class: 'legend' }, used.map((policy) =>
    h('span', null, s('svg', { class: `chip ${hue(policy)}`, viewBox: '0 0 12 12',
      'aria-hidden': 'true' }, s('path', { d: mark(policy, 6, 6, 4.4), fill: 'var(--c)' })),
    answer.policies[policy])));
}

/** Marks in few elements: one a colour and form. */
function markParts(marks) {
  const layers = new Map();
  for (const { x, y, policy, colour, hollow, r } of marks) {
    const name = `${hollow ? 'hollow' : 'solid'} ${colour}`;
    if (!layers.has(name)) layers.set(name, []);
    layers.get(name).push(mark(policy, x, y, r));
  }
  return [...layers].map(([name, outlines]) => s('path', { class: name, d: outlines.join('') }));
}

function tradeFront(points, x, y) {
  const front = points.filter((point) => point.front).sort((a, b) => a.kept - b.kept)
    .map((point) => [x.scale(point.kept), y.scale(point.gain)]);
  return steppedLine(front, false);
}

/** A limit: a line across, and its name at its end. */
function limitLine(box, at, text) {
  const left = at + textWidth(text) + 8 > box.right;
  return [line(at, box.top, at, box.bottom, 'limit'),
    label(at + (left ? -5 : 5), box.top + 10, text,
      { class: 'limit label', 'text-anchor': left ? 'end' : null })];
}

function best(answer, marks) {
  const found = marks.find((one) => one.point === answer.recommended);
  if (!found) return [];
  return [s('circle', { class: 'best', cx: found.x, cy: found.y, r: 9.5 })];
}

function bestLabel(answer, marks, lines, box) {
  const found = marks.filter((one) => one.point === answer.recommended);
  return placedLabels(found.map((one) => ({ x: one.x, y: one.y - 3, policy: one.policy,
    text: 'recommended' })), marks.slice(0, 400), lines, box);
}

function frameOf(width) {
  const height = Math.max(320, Math.min(460, width * 0.6));
  return { height, box: { left: 56, right: width - 14, outer: width, top: 30,
    bottom: height - 46 } };
}

function marksOf(answer, points, x, y, colour) {
  const full = Math.max(...points.map((point) => point.seconds));
  return points.map((point) => ({ x: round(x(point)), y: round(y(point)), policy: point.policy,
    point: point.id, colour: colour(point), text: pointText(answer, point),
    hollow: point.oracle || !point.available,
    r: point.seconds < kShortest * full ? 2.6 : 4.4 }));
}

/** Whoever keeps much less of training than asked for would only press the others together. */
const leastShown = (answer) => Math.max(0, 1 - 4 * Math.max(0.05, 1 - answer.limits.keep));

function drawTrade(plot, width, answer, points, colour) {
  const { height, box } = frameOf(width);
  const least = leastShown(answer);
  const shown = points.filter((point) => point.kept >= least);
  const keep = answer.limits.keep;
  const low = Math.min(keep, ...shown.map((point) => point.kept));
  const high = Math.max(1, ...shown.map((point) => point.kept));
  const x = linearScale(low, high, box.left, box.right, Math.max(3, Math.floor(width / 110)));
  const y = scaleFor([0, ...shown.map((point) => point.gain)], box.bottom, box.top, 6, Infinity);
  const marks = marksOf(answer, shown, (point) => x.scale(point.kept),
    (point) => y.scale(point.gain), colour);
  const front = tradeFront(shown, x, y);
  putChart(plot, width, height, `Training kept and filler gained: ${
    plural(marks.length, 'setting')}`,
  `GPUs' worth of the filler over the share of training kept, with the limit ${keep} as a line.`,
  [...axes(box, x, y, 'training kept', 'filler gained, GPUs'), ...front.parts,
    ...limitLine(box, x.scale(keep), `limit ${numberText(keep)}`), ...markParts(marks),
    ...best(answer, marks), ...bestLabel(answer, marks, front.room, box)], marks);
}

function drawLatency(plot, width, answer, points) {
  const { height, box } = frameOf(width);
  const shown = points.filter((point) => point.p95 !== null && point.p95 > 0 && !point.overloaded);
  const limit = answer.limits.p95_ns === null ? null : answer.limits.p95_ns / 1e6;
  const all = shown.map((point) => point.p95);
  const x = scaleFor(limit === null ? all : [...all, limit], box.left, box.right,
    Math.max(3, Math.floor(width / 110)), 8);
  const y = scaleFor([0, ...shown.map((point) => point.gain)], box.bottom, box.top, 6, Infinity);
  const marks = marksOf(answer, shown, (point) => x.scale(point.p95),
    (point) => y.scale(point.gain), (point) => hue(point.policy));
  putChart(plot, width, height, `Latency and filler gained: ${plural(marks.length, 'setting')}`,
    `GPUs' worth of the filler over its p95 latency${
      limit === null ? '' : `, with the limit ${numberText(limit)} ms as a line`}.`,
    [...axes(box, x, y, 'p95, ms', 'filler gained, GPUs'),
      ...(limit === null ? [] : limitLine(box, x.scale(limit), `limit ${numberText(limit)} ms`)),
      ...markParts(marks), ...best(answer, marks), ...bestLabel(answer, marks, [], box)], marks);
}
