// A policy looks the same everywhere: one colour, one shape, one dash. Shape and dash alone tell
// policies apart in grey.

const kHues = 9;
const kShapes = 10;
const kDashes = [null, '7 3', '2 2.5', '9 3 2 3', '4 2', '12 3', '1.5 3.5', '7 2 2 2 2 2'];

const hue = (policy) => `p${policy % kHues}`;
const dash = (policy) => kDashes[policy % kDashes.length];

function polygon(x, y, r, corners, turn) {
  const steps = Array.from({ length: corners }, (_, i) => {
    const angle = turn + (2 * Math.PI * i) / corners;
    return `${round(x + r * Math.sin(angle))} ${round(y - r * Math.cos(angle))}`;
  });
  return `M${steps.join('L')}Z`;
}

function crossed(x, y, r, turned) {
  const a = r * 0.36;
  const corners = [[-a, -r], [a, -r], [a, -a], [r, -a], [r, a], [a, a], [a, r], [-a, r], [-a, a],
    [-r, a], [-r, -a], [-a, -a]];
  const turn = turned ? Math.SQRT1_2 : 0;
  const steps = corners.map(([u, v]) => (turned
    ? `${round(x + (u - v) * turn)} ${round(y + (u + v) * turn)}`
    : `${round(x + u)} ${round(y + v)}`));
  return `M${steps.join('L')}Z`;
}

/** The outline of a policy's mark, of about radius r. */
function mark(policy, x, y, r) {
  switch (policy % kShapes) {
    case 0: return `M${round(x - r)} ${round(y)}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${
      -2 * r} 0Z`;
    case 1: return polygon(x, y, r * 1.2, 4, Math.PI / 4);
    case 2: return polygon(x, y + r * 0.15, r * 1.25, 3, 0);
    case 3: return polygon(x, y, r * 1.3, 4, 0);
    case 4: return polygon(x, y - r * 0.15, r * 1.25, 3, Math.PI);
    case 5: return crossed(x, y, r * 1.2, false);
    case 6: return polygon(x, y, r * 1.15, 6, 0);
    case 7: return crossed(x, y, r * 1.25, true);
    case 8: return polygon(x, y, r * 1.25, 3, Math.PI / 2);
    default: return polygon(x, y, r * 1.2, 5, 0);
  }
}

/** A line and a mark, as in the figures. */
function swatch(policy) {
  return s('svg', { class: `swatch ${hue(policy)}`, viewBox: '0 0 26 14', 'aria-hidden': 'true' },
    s('line', { x1: 0, y1: 7, x2: 26, y2: 7, class: 'line', 'stroke-dasharray': dash(policy) }),
    s('path', { d: mark(policy, 13, 7, 4), class: 'solid' }));
}

const pointName = (point) => {
  const settings = settingsText(point);
  return rowName(point) + (settings ? `, ${settings}` : '');
};

/** Marks of many points in few elements: one a policy, solid or hollow. */
function markLayers(marks, r) {
  const layers = new Map();
  for (const { x, y, policy, bound } of marks) {
    const name = `${bound ? 'hollow' : 'solid'} ${hue(policy)}`;
    const id = `${policy} ${name}`;
    if (!layers.has(id)) layers.set(id, { name, outlines: [] });
    layers.get(id).outlines.push(mark(policy, x, y, r));
  }
  return [...layers.values()].map(({ name, outlines }) =>
    s('path', { class: name, d: outlines.join('') }));
}

/**
 * Makes marks reachable: by pointer (the nearest within reach) and by keys (left and right along
 * the order of marks, up and down to the next policy, Enter to choose). `marks`: x, y, policy,
 * text, point.
 */
function reachable(plot, svg, marks) {
  const halo = s('circle', { class: 'halo', r: 9, visibility: 'hidden' });
  svg.append(halo);
  const tip = h('div', { class: 'tip', hidden: true });
  plot.append(tip);
  let at = -1;
  const show = (place, aloud) => {
    at = place;
    halo.setAttribute('visibility', place < 0 ? 'hidden' : 'visible');
    tip.hidden = place < 0;
    if (place < 0) return;
    const { x, y, text } = marks[place];
    halo.setAttribute('cx', x);
    halo.setAttribute('cy', y);
    tip.textContent = text;
    const left = Math.max(0, Math.min(x + 14, plot.clientWidth - tip.offsetWidth));
    tip.style.left = `${left}px`;
    tip.style.top = `${Math.max(0, y - tip.offsetHeight - 12)}px`;
    if (aloud) say(text.replaceAll('\n', ', '));
  };
  const nearest = (event) => {
    const box = svg.getBoundingClientRect();
    const x = event.clientX - box.left;
    const y = event.clientY - box.top;
    let best = -1;
    let least = 26 ** 2;
    marks.forEach((one, place) => {
      const distance = (one.x - x) ** 2 + (one.y - y) ** 2;
      if (distance < least) {
        least = distance;
        best = place;
      }
    });
    return best;
  };
  const other = (way) => {
    const order = [...new Set(marks.map((one) => one.policy))];
    const next = order[(order.indexOf(marks[at].policy) + way + order.length) % order.length];
    return marks.findIndex((one) => one.policy === next);
  };
  const along = (way) => {
    const own = marks.map((one, place) => place)
      .filter((place) => marks[place].policy === marks[at].policy);
    return own[(own.indexOf(at) + way + own.length) % own.length];
  };
  const onKey = (event) => {
    if (marks.length === 0) return;
    const moves = { ArrowRight: () => along(1), ArrowLeft: () => along(-1),
      ArrowDown: () => other(1), ArrowUp: () => other(-1), Home: () => 0,
      End: () => marks.length - 1 };
    if (moves[event.key]) {
      show(at < 0 ? 0 : moves[event.key](), true);
    } else if ((event.key === 'Enter' || event.key === ' ') && at >= 0) {
      if (marks[at].point !== undefined) choosePoint(marks[at].point, true);
    } else if (event.key === 'Escape') {
      show(-1);
    } else {
      return;
    }
    event.preventDefault();
  };
  plot.onkeydown = onKey;
  plot.onblur = () => show(-1);
  plot.onfocus = () => {
    if (at < 0 && marks.length > 0 && plot.matches(':focus-visible')) show(0, true);
  };
  plot.onpointermove = (event) => show(nearest(event), false);
  plot.onpointerleave = () => show(-1);
  plot.onclick = (event) => {
    const found = nearest(event);
    if (found >= 0 && marks[found].point !== undefined) choosePoint(marks[found].point, false);
  };
}

/** The place of a chart that keys reach. */
function plotPlace(name) {
  return h('div', { class: 'plot', tabindex: 0, role: 'application', 'aria-label':
    `${name}. Arrow keys move among points, Enter shows where one comes from.` });
}

/** Puts a chart into its place: what it shows, then what makes it reachable. */
function putChart(plot, width, height, title, description, parts, marks) {
  const titled = freshId('chart');
  const svg = s('svg', { width, height, viewBox: `0 0 ${width} ${height}`, role: 'img',
    'aria-label': title, 'aria-describedby': titled });
  svg.append(s('desc', { id: titled }, description), ...parts);
  fill(plot, svg);
  reachable(plot, svg, marks);
}
