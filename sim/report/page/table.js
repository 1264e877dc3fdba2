// Tables that sort by click and by keyboard, a page of rows at a time.

const kRowsAtFirst = 40;
const kRowsMore = 400;

/** Numbers before texts, nothing last whichever way. */
function compared(a, b, down) {
  const none = (value) => value === null || value === undefined || value === '';
  if (none(a) || none(b)) return Number(none(a)) - Number(none(b));
  const order = typeof a === 'number' && typeof b === 'number'
    ? a - b : String(a).localeCompare(String(b), 'en', { numeric: true });
  return down ? -order : order;
}

function headCell(column, sort, onSort) {
  const sorted = sort !== null && sort.column === column.id;
  const way = sorted ? (sort.down ? 'descending' : 'ascending') : null;
  const title = [h('span', { class: onSort ? 'way' : null }, column.title),
    column.unit ? h('span', { class: 'unit' }, column.unit) : null];
  return h('th', { scope: 'col', class: column.number ? 'number' : null,
    'aria-sort': onSort ? way || 'none' : null, 'data-column': column.id },
  onSort ? h('button', { type: 'button', on: { click: () => onSort(column) } }, title) : title);
}

function bodyRow(row, columns, options) {
  const cells = columns.map((column, place) => {
    const content = column.cell ? column.cell(row) : column.text(row);
    const name = [column.number ? 'number' : '', column.long ? 'text' : ''].join(' ').trim();
    return place === 0 ? h('th', { scope: 'row', class: name || null }, content)
      : h('td', { class: name || null }, content);
  });
  const chosen = options.chosen && options.chosen(row);
  return h('tr', { class: chosen ? 'chosen' : null,
    'data-point': options.point ? options.point(row) : null }, cells);
}

/**
 * columns: id, title, unit, number, value(row) to sort by, text(row) or cell(row) to show.
 * options: label, sort, onSort(sort), first (rows shown at first), point(row), chosen(row).
 */
function tableOf(columns, rows, options) {
  const sort = options.sort || null;
  const column = sort && columns.find((one) => one.id === sort.column);
  const order = column
    ? rows.map((row, place) => ({ row, place, value: column.value(row) }))
      .sort((a, b) => compared(a.value, b.value, sort.down) || a.place - b.place)
      .map((one) => one.row)
    : rows;
  const onSort = options.onSort && ((chosen) => {
    const again = sort !== null && sort.column === chosen.id;
    options.onSort({ column: chosen.id, down: again ? !sort.down : Boolean(chosen.number) });
  });
  const body = h('tbody', null);
  const more = h('button', { type: 'button', class: 'more' });
  let count = 0;
  const show = (next) => {
    order.slice(count, count + next).forEach((row) => body.append(bodyRow(row, columns, options)));
    count = Math.min(order.length, count + next);
    more.hidden = count >= order.length;
    more.textContent = `Show more rows (${fixed(order.length - count, 0)} left)`;
  };
  more.addEventListener('click', () => show(kRowsMore));
  show(options.first || kRowsAtFirst);
  return [h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': options.label },
    h('table', { class: 'wide' }, h('caption', null, options.label),
      h('thead', null, h('tr', null, columns.map((one) => headCell(one, sort, onSort)))),
      body)), more];
}

/** Keeps the focus on the header that was used to sort, though the table is made anew. */
function sorting(name, draw, container) {
  return (sort) => {
    state.sort[name] = sort;
    writeHash();
    draw();
    const cell = [...container.querySelectorAll('th[data-column]')]
      .find((one) => one.dataset.column === sort.column);
    if (cell) cell.querySelector('button').focus();
    say(`Sorted by ${cell ? cell.textContent : sort.column}, ${
      sort.down ? 'descending' : 'ascending'}.`);
  };
}

/** The data of a chart, made when it is opened. `rows` may be a function that makes them then. */
function dataTable(label, columns, rows) {
  const count = Array.isArray(rows) ? ` (${plural(rows.length, 'row')})` : '';
  const details = h('details', null, h('summary', null, `Data of the figure${count}`));
  details.addEventListener('toggle', () => {
    if (details.open && details.children.length === 1) {
      details.append(...tableOf(columns, Array.isArray(rows) ? rows : rows(), { label }));
    }
  });
  return details;
}
