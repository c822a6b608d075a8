// What the result is about: words for its fields, and the facts of server, client, scenario and generator.

const STAGES = ['queue', 'receive', 'stage', 'h2d', 'kernel', 'd2h', 'send', 'other'];
const STAGE_WORDS = {
  queue: 'waiting for admission',
  receive: 'waiting for and reading messages',
  stage: 'copying into staging blocks',
  h2d: 'copying to the device',
  kernel: 'computing',
  d2h: 'copying to the host',
  send: 'writing the reply',
  other: 'in none of these: dispatch, parsing, waking',
};
const CLIENT_STAGES = ['call', 'retry', 'connect', 'open', 'exchange', 'write', 'result', 'receive', 'sink'];
const CLIENT_WORDS = {
  call: 'all of it',
  retry: 'given up, and waiting for the next',
  connect: 'until the connection took the call',
  open: 'until the server admitted it',
  exchange: 'until the reply is here',
  write: 'handing chunks to gRPC',
  result: 'until the result is here',
  receive: 'waiting for output',
  sink: 'storing output',
};
const CEILING_WORDS = {
  h2d: 'copy to the device',
  d2h: 'copy to the host',
  h2d_both: 'copy to the device, both ways busy',
  d2h_both: 'copy to the host, both ways busy',
  host_copy_1: 'memcpy into pinned memory, one thread',
  host_copy_all: 'memcpy into pinned memory, all threads',
  device_copy: 'copy on the device, read + written',
};

const list = (value) => (Array.isArray(value) ? value : []);
const known = (value) => value !== undefined && value !== null && value !== '';
const errorsOf = (stat) => Object.values(stat.errors || {}).reduce((sum, n) => sum + (num(n) || 0), 0);

/** "auto" for the server's own choice. */
const blockText = (bytes) => (bytes ? size(bytes) : 'auto');
const laneText = (lanes) => (lanes ? String(lanes) : 'auto');

/** What bounds an operation or a cell of the study at best, as far as it was measured: {rate, words}, or null. */
function ceilingOf(one, data) {
  const reduces = one.reduces ?? one.operation === 'rmse';  // earlier results do not say it
  const known_ = data.ceilings || {};
  const both = (num(known_.h2d_both) || 0) + (num(known_.d2h_both) || 0);
  if (!reduces && both) return {rate: both, words: 'of the copy limit, both ways together'};
  const in_ = num(known_.h2d) || num((data.server || {}).copy_in_bytes_per_second);
  if (reduces && in_) return {rate: in_, words: 'of the limit of copying to the device'};
  const host = num(known_.host_copy_all);
  return host ? {rate: host, words: 'of memcpy on all threads'} : null;
}

function modeText(mode) {
  if (!mode) return '';
  const callers = known(mode.callers) ? `${exact(mode.callers)} caller${mode.callers === 1 ? '' : 's'}` : '';
  const arrivals = mode.arrivals === 'poisson' ? 'Poisson arrivals' : 'constant arrivals';
  if (mode.type === 'open') return `open loop, ${perSecond(mode.rate)}, ${arrivals}`;
  if (mode.type === 'ramp') {
    return `ramp, ${arrivals}, ${percentileName(mode.percentile || 'p99')} held under ${time(mode.bound_us)}`;
  }
  return `closed loop, ${callers}`;
}

function startedText(data) {
  const when = new Date(data.started);
  if (Number.isNaN(when.getTime())) return '';
  return when.toISOString().replace('T', ' ').replace(/\.\d+Z|Z$/, ' UTC');
}

/** A list of facts; those without a value are left out. */
function factList(rows) {
  return el(
      'dl', {},
      rows.filter(([, value]) => known(value) && value !== DASH)
          .map(([name, value]) => el('div', {}, el('dt', {}, name), el('dd', {}, value))));
}

function scenarioValue(key, value) {
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (num(value) === null) return String(value);
  if (/bytes$/.test(key)) return size(value);
  if (/_us$/.test(key)) return time(value);
  if (/seconds$/.test(key)) return seconds(value);
  return String(value);
}

const humanKey = (key) => key.replace(/_(us|bytes|seconds)$/, '').replace(/_/g, ' ');

function scenarioCard(data) {
  const scenario = data.scenario || {};
  const plain = Object.entries(scenario).filter(
      ([key, value]) => key !== 'seed' && (value === null || typeof value !== 'object'));
  const rows = plain.filter(([, value]) => value !== null)
                   .map(([key, value]) => [humanKey(key), scenarioValue(key, value)]);
  return el(
      'div', {class: 'card'}, el('h3', {}, 'Scenario'), factList([
        ['Load', modeText(data.mode)], ['Seed', known(data.seed) ? String(data.seed) : ''], ...rows,
        ['Ended', data.stop ? data.stop.text || data.stop.reason : '']
      ]),
      Object.keys(scenario).length ? el('details', {}, el('summary', {}, 'As it was understood'),
                                        el('pre', {}, JSON.stringify(scenario, null, 2))) :
                                     null);
}

function ceilingsCard(data) {
  const entries = Object.entries(data.ceilings || {}).filter(([, value]) => num(value) > 0);
  if (!entries.length) return null;
  return el(
      'div', {class: 'card limits'}, el('h3', {}, 'Measured limits of the machine'),
      factList(entries.sort((a, b) => b[1] - a[1])
                   .map(([name, value]) => [CEILING_WORDS[name] || name, rate(value)])));
}

function factsSection(data) {
  const server = data.server || {};
  const client = data.client || {};
  const generator = data.generator || {};
  return {
    id: 'facts',
    title: 'Facts',
    build(body) {
      body.append(el('div', { class: 'cards' },
        el('div', { class: 'card' }, el('h3', {}, 'Server'), factList([
          ['Address', server.address],
          ['Device', [server.device, server.device_name].filter(known).join(', ')], ['Processors', exact(server.processors)],
          ['Block', known(server.block_bytes) ? blockText(server.block_bytes) : ''],
          ['Lanes', known(server.lanes) ? laneText(server.lanes) : ''], ['Copy to the device', rate(server.copy_in_bytes_per_second)],
          ['Copy to the host', rate(server.copy_out_bytes_per_second)], ['Version', server.version],
          ['Instance', server.instance]])),
        el('div', { class: 'card' }, el('h3', {}, 'Client'), factList([
          ['Processor', client.processor], ['Cores', exact(client.cores)], ['Memory', size(client.memory_bytes)],
          ['System', client.os], ['Version', client.version]])),
        scenarioCard(data),
        el('div', { class: 'card' }, el('h3', {}, 'Load generator'), factList([
          ['Bottleneck', generator.bottleneck ? 'yes' : 'no'], ['Share of the cores', percent(generator.cpu_share)],
          ['Late starts', exact(generator.late_starts)], ['Latest start', num(generator.max_late_us) === null ? ''
            : time(generator.max_late_us) + ' late']]),
        known(generator.text) ? el('p', { class: 'small' }, sentence(generator.text)) : null),
        ceilingsCard(data)));
    },
  };
}
