// The figures as tables: operations, errors, every cell of a study.

/**
 * A table whose columns sort it. columns: [{title, value(row), text?(row), left?}]; `limit` rows show at
 * first.
 */
function sortable(name, columns, rows, limit = Infinity) {
  let order = rows;
  let all = rows.length <= limit;
  const body = el('tbody', {});
  const cellOf = (column, row, index) => {
    const content = column.text ? column.text(row) : String(column.value(row));
    return index === 0 ? el('th', {scope: 'row'}, content) :
                         el('td', {class: column.left ? 'left' : null}, content);
  };
  const show = () => body.replaceChildren(
      ...(all ? order : order.slice(0, limit))
          .map((row) => el('tr', {}, columns.map((column, index) => cellOf(column, row, index)))));
  const headings = columns.map((column, index) => {
    const heading = el('th', {scope: 'col', class: index === 0 || column.left ? 'left' : null});
    heading.append(
        el('button', {
          type: 'button',
          onclick() {
            const down = heading.getAttribute('aria-sort') !== 'descending';
            headings.forEach((other) => other.removeAttribute('aria-sort'));
            heading.setAttribute('aria-sort', down ? 'descending' : 'ascending');
            order = [...rows].sort((a, b) => {
              const [x, y] = [column.value(a), column.value(b)];
              const less = typeof x === 'string' || typeof y === 'string' ? byName.compare(x, y) : x - y;
              return down ? -less : less;
            });
            show();
          }
        },
           column.title));
    return heading;
  });
  show();
  const table =
      el('div', {class: 'scroll', tabindex: '0', role: 'region', 'aria-label': name},
         el('table', {class: 'figures-table'}, el('thead', {}, el('tr', {}, headings)), body));
  const more = all ? null :
                     el('button', {
                       type: 'button',
                       class: 'quiet',
                       onclick(event) {
                         all = true;
                         show();
                         event.currentTarget.remove();
                       }
                     },
                        `Show all ${rows.length}`);
  return [table, more];
}

const latencyColumn = (key) => ({
  title: percentileName(key),
  value: (stat) => num((stat.latency_us || {})[key]) || 0,
  text: (stat) => timeOrNone((stat.latency_us || {})[key])
});

function operationsSection(data) {
  const operations = list(data.operations);
  if (!operations.length) return null;
  const total = data.total || {};
  const rows = operations.length > 1 ? [...operations, {...total, name: 'all calls'}] : operations;
  const sent = (stat) =>
      (stat.wire_bytes < stat.bytes ? `${percent(stat.wire_bytes / stat.bytes)} sent` : '');
  const wire =
      (stat) => [stat.access, stat.connections > 1 ? `${stat.connections} connections` : '', sent(stat)]
                    .filter(Boolean)
                    .join(', ');
  const array = (stat) => [stat.dtype, shapeText(stat.shape)].filter(Boolean).join(' ');
  const columns = [
    {title: 'Operation', value: (stat) => stat.name || stat.operation || ''},
    {
      title: 'Arrays, way',
      left: true,
      value: array,
      text: (stat) => [array(stat), el('div', {class: 'small'}, wire(stat))]
    },
    {title: 'Calls', value: (stat) => num(stat.calls) || 0, text: (stat) => count(stat.calls)},
    {
      title: 'Wrong',
      value: (stat) => num(stat.wrong) || 0,
      text: (stat) => marked(num(stat.wrong) || 0, 'bad')
    },
    {title: 'Errors', value: errorsOf, text: (stat) => marked(errorsOf(stat), 'odd')},
    {
      title: 'Throughput',
      value: (stat) => num(stat.bytes_per_second) || 0,
      text: (stat) => rate(stat.bytes_per_second)
    },
    {
      title: 'Calls/s',
      value: (stat) => num(stat.calls_per_second) || 0,
      text: (stat) => si(stat.calls_per_second)
    },
    ...['p50', 'p90', 'p99', 'p99_9', 'max'].map(latencyColumn),
    ...(rows.some((stat) => num(stat.overlap) !== null) ? [{
      title: 'Overlap',
      value: (stat) => num(stat.overlap) || 0,
      text: (stat) => factor(stat.overlap)
    }] :
                                                          []),
  ];
  return {
    id: 'operations',
    title: 'Operations',
    build: (body) => body.append(...sortable('Operations', columns, rows).filter(Boolean))
  };
}

const marked = (value, state) => (value ? el('span', {class: state}, count(value)) : '0');

const ERROR_WORDS = {
  BUSY: 'the queue was full or too slow; worth a retry',
  LIMIT: 'larger than the server allows; never worth a retry',
  IDLE: 'a stream made no progress, or a message did not come',
  STREAM_LOST: 'another stream of the same call ended early',
  USE_EXECUTE: 'too large for a unary call',
  UNAVAILABLE: 'no server, or one that is draining',
  DEADLINE_EXCEEDED: 'out of time, queued or under way',
  CANCELLED: 'given up by the client',
  DATA_LOSS: 'bytes arrived damaged',
  INTERNAL: 'a fault in the server; its log has more',
};

const errorWords = (status) =>
    status.split('/').reverse().map((word) => ERROR_WORDS[word]).find(Boolean) || '';

/** A status, what it means, how often it came, and to which operations. */
function errorRow(data, status, calls, high) {
  const by = list(data.operations)
                 .map((stat) => [stat.name, (stat.errors || {})[status] || 0])
                 .filter((pair) => pair[1] > 0);
  const names = by.map(([name, n]) => `${name} ${count(n)}`).join(', ');
  return el(
      'tr', {},
      el('th', {scope: 'row'}, el('code', {}, status), el('div', {class: 'small'}, errorWords(status)),
         el('div', {class: 'small'}, list(data.operations).length > 1 ? names : '')),
      el('td', {}, count(calls)),
      el('td', {class: 'bar', 'aria-hidden': 'true'},
         el('span', {class: 'm-error', style: `width:${px(Math.max(1, (100 * calls) / high))}%`})));
}

function errorsSection(data) {
  const total = data.total || {};
  const rows = Object.entries(total.errors || {}).filter((entry) => entry[1] > 0).sort((a, b) => b[1] - a[1]);
  if (!rows.length) return null;
  return {
    id: 'errors',
    title: 'Errors',
    note: `${count(errorsOf(total))} of ${count(total.calls)} calls ended with an error, ${
        percent(errorsOf(total) / total.calls)}.`,
    build: (body) => body.append(
        el('table', {class: 'bars errors'},
           el('thead', {},
              el('tr', {}, el('th', {scope: 'col', class: 'left'}, 'Status'),
                 el('th', {scope: 'col'}, 'Calls'), el('td', {}))),
           el('tbody', {}, rows.map(([status, calls]) => errorRow(data, status, calls, rows[0][1]))))),
  };
}

function cellsSection(data) {
  const cells = list(data.study);
  if (!cells.length) return null;
  const shown = [...cells].sort((a, b) => (num(b.bytes_per_second) || 0) - (num(a.bytes_per_second) || 0));
  const best = bestCell(cells);
  const number = (title, key, text) =>
      ({title, value: (cell) => num(cell[key]) || 0, text: (cell) => text(cell[key])});
  const columns = [
    {
      title: 'Operation',
      value: (cell) => cell.operation,
      text: (cell) => (cell === best ? '★ ' : '') + cell.operation
    },
    ...(cells.some((cell) => viaOf(cell) !== 'wire') ?
            [{title: 'Arrays go', left: true, value: (cell) => viaOf(cell), text: (cell) => viaOf(cell)}] :
            []),
    number('Bytes a call', 'bytes', size),
    number('Block size', 'block_bytes', blockText),
    number('Lanes', 'lanes', laneText),
    number('Connections', 'connections', count),
    {title: 'Overlap', left: true, value: (cell) => (cell.overlap ? 'on' : 'off')},
    {
      title: 'Throughput',
      value: (cell) => num(cell.bytes_per_second) || 0,
      text: (cell) => rate(cell.bytes_per_second) + noiseText(cell.noise)
    },
    ...(cells.some((cell) => num(cell.wrong) || errorsOf(cell)) ?
            [
              {
                title: 'Wrong',
                value: (cell) => num(cell.wrong) || 0,
                text: (cell) => marked(num(cell.wrong) || 0, 'bad')
              },
              {title: 'Errors', value: errorsOf, text: (cell) => marked(errorsOf(cell), 'odd')}
            ] :
            []),
    number('p50', 'p50_us', timeOrNone),
    ...(cells.some((cell) => num(cell.overlap_factor) !== null) ?
            [number('Stages ÷ wall', 'overlap_factor', factor)] :
            []),
    ...(cells.some((cell) => known(cell.bottleneck)) ? [{
      title: 'Bottleneck',
      left: true,
      value: (cell) => cell.bottleneck || '',
      text: (cell) => cell.bottleneck || DASH
    }] :
                                                       []),
  ];
  return {
    id: 'cells',
    title: 'All measurements',
    build: (body) => body.append(...sortable('All measurements', columns, shown, 20).filter(Boolean))
  };
}
