// A table that sorts itself, without the address remembering how.

/** `columns` and `rows` as tableOf() takes them. */
function sortedTable(label, columns, rows) {
  const place = h('div', null);
  let sort = null;
  const draw = () => fill(place, ...tableOf(columns, rows, { label, sort, onSort: (next) => {
    sort = next;
    draw();
    const cell = [...place.querySelectorAll('th[data-column]')]
      .find((one) => one.dataset.column === next.column);
    cell.querySelector('button').focus();
    say(`Sorted by ${cell.textContent}, ${next.down ? 'descending' : 'ascending'}.`);
  } }));
  draw();
  return place;
}

/** A column whose cells are a value of the row. */
const valueColumn = (id, title, unit, value, digits) => ({ id, title, unit,
  number: digits !== undefined, value,
  text: (row) => {
    const found = value(row);
    if (found === null || found === undefined) return '';
    return digits === undefined ? String(found) : fixed(found, digits);
  } });
