/**
 * Scripted scenarios: recorded from a real etcd, and replayed on the simulated one.
 */
import { message, nested } from './messages.ts'

export type Step =
  | { readonly do: 'call'; readonly path: string; readonly request: Buffer }
  /** Sends on a watch stream; opens it when it is new. */
  | { readonly do: 'watch'; readonly stream: string; readonly request: Buffer }
  /** What the stream has sent since the last time, once it is quiet. */
  | { readonly do: 'messages'; readonly stream: string }
  | { readonly do: 'wait'; readonly ms: number }
  | { readonly do: 'restart' }
  | { readonly do: 'snapshot' }
  | { readonly do: 'restore'; readonly bump: number }

export interface Scenario {
  readonly name: string
  /** 0: etcd's default, which these scenarios do not reach. */
  readonly quotaBytes: number
  readonly steps: readonly Step[]
}

const call = (path: string, request: Buffer): Step => ({ do: 'call', path, request })
const putOp = (
  key: string,
  value: string,
  more: { lease?: number; prevKv?: boolean } = {},
): Buffer => nested(2, nested(2, message([1, key], [2, value], [3, more.lease], [4, more.prevKv])))
const deleteOp = (key: string, end: string = '', prevKv: boolean = false): Buffer =>
  nested(2, nested(3, message([1, key], [2, end], [3, prevKv])))
const nestedOp = (...ops: readonly Buffer[]): Buffer => nested(2, nested(4, Buffer.concat(ops)))
const txn = (...ops: readonly Buffer[]): Step => call('KV/Txn', Buffer.concat(ops))
const put = (...args: Parameters<typeof putOp>): Step => txn(putOp(...args))
const remove = (key: string): Step => txn(deleteOp(key, '', true))
const range = (key: string, end: string = '', revision: number = 0): Step =>
  call('KV/Range', message([1, key], [2, end], [4, revision]))
const all: Step = range('\0', '\0')
const compact = (revision: number): Step => call('KV/Compact', message([1, revision], [2, true]))
const grant = (id: number, ttl: number): Step =>
  call('Lease/LeaseGrant', message([1, ttl], [2, id]))
const timeToLive = (id: number): Step => call('Lease/LeaseTimeToLive', message([1, id]))
const keepAlive = (id: number): Step => call('Lease/LeaseKeepAlive', message([1, id]))
const alarms: Step = call('Maintenance/Alarm', Buffer.alloc(0))
const wait = (ms: number): Step => ({ do: 'wait', ms })
const watch = (stream: string, start: number, more: { key?: string; end?: string } = {}): Step => ({
  do: 'watch',
  stream,
  request: nested(
    1,
    message([1, more.key ?? '\0'], [2, more.end ?? '\0'], [3, start], [6, true], [8, true]),
  ),
})
const messages = (stream: string): Step => ({ do: 'messages', stream })
const progress = (stream: string): Step => ({
  do: 'watch',
  stream,
  request: nested(3, Buffer.alloc(0)),
})
const fewPuts: readonly Step[] = [
  put('a', '1'),
  put('b', '1'),
  put('a', '2', { prevKv: true }),
  remove('b'),
  put('c', '1'),
  put('b', '2'),
]

export const scenarios: readonly Scenario[] = [
  {
    name: 'transactions',
    quotaBytes: 0,
    steps: [
      ...fewPuts,
      txn(
        putOp('a', '3'),
        nestedOp(putOp('d', '1'), deleteOp('b')),
        nested(2, nested(1, message([1, 'a']))),
      ),
      txn(putOp('a', '4'), putOp('a', '5')),
      txn(putOp('a', '4'), deleteOp('a', 'b')),
      // A delete to the end of all keys is not found to contain the key, nor one after a put.
      txn(putOp('a', '4'), deleteOp('a', '\0')),
      txn(nestedOp(putOp('e', '1')), nestedOp(deleteOp('e'))),
      txn(nestedOp(deleteOp('e')), nestedOp(putOp('e', '1'))),
      txn(nested(2, Buffer.alloc(0))),
      txn(putOp('', 'x')),
      txn(),
      all,
      watch('w', 1),
      messages('w'),
    ],
  },
  {
    name: 'watches',
    quotaBytes: 0,
    steps: [
      ...fewPuts,
      watch('past', 2),
      messages('past'),
      progress('past'),
      messages('past'),
      watch('future', 10, { key: 'a', end: '' }),
      progress('future'),
      put('a', 'before'),
      messages('future'),
      put('x', '1'),
      put('a', 'after'),
      messages('future'),
      progress('future'),
      messages('future'),
      watch('refused', 0, { key: 'b', end: 'a' }),
      watch('refused', -1),
      watch('refused', 0, { key: 'a', end: '' }),
      put('a', 'last'),
      messages('refused'),
      progress('refused'),
      messages('refused'),
    ],
  },
  {
    name: 'compaction',
    quotaBytes: 0,
    steps: [
      ...fewPuts,
      remove('c'),
      put('a', '3'),
      compact(0),
      compact(8),
      compact(8),
      compact(100),
      range('a', '', 7),
      range('c', '', 8),
      range('a', '', 8),
      watch('early', 7),
      messages('early'),
      progress('early'),
      messages('early'),
      watch('first', 8),
      messages('first'),
      progress('first'),
      messages('first'),
      put('a', '4'),
      messages('first'),
      { do: 'restart' },
      all,
      range('a', '', 7),
      watch('again', 8),
      messages('again'),
      compact(10),
      watch('late', 9),
      messages('late'),
      put('z', '1'),
      messages('again'),
    ],
  },
  {
    name: 'leases',
    quotaBytes: 0,
    steps: [
      grant(1, 1),
      grant(1, 5),
      grant(2, 60),
      put('short', 'x', { lease: 1 }),
      put('also short', 'x', { lease: 1 }),
      put('long', 'x', { lease: 2 }),
      put('long', 'y', { lease: 3 }),
      wait(300),
      timeToLive(1),
      wait(1_000),
      timeToLive(2),
      keepAlive(2),
      wait(300),
      timeToLive(2),
      watch('w', 2),
      wait(2_500),
      timeToLive(1),
      keepAlive(1),
      all,
      messages('w'),
      call('Lease/LeaseRevoke', message([1, 2])),
      call('Lease/LeaseRevoke', message([1, 2])),
      messages('w'),
      all,
    ],
  },
  {
    name: 'restart',
    quotaBytes: 0,
    steps: [
      ...fewPuts,
      grant(4, 60),
      put('leased', 'x', { lease: 4 }),
      wait(2_400),
      timeToLive(4),
      { do: 'restart' },
      wait(200),
      timeToLive(4),
      all,
      range('a', '', 3),
      keepAlive(4),
      wait(300),
      timeToLive(4),
      put('a', 'new'),
      watch('w', 2),
      messages('w'),
    ],
  },
  {
    name: 'restore',
    quotaBytes: 0,
    steps: [
      ...fewPuts,
      grant(4, 30),
      put('leased', 'x', { lease: 4 }),
      compact(4),
      wait(1_500),
      { do: 'snapshot' },
      put('a', 'lost'),
      put('lost', 'x'),
      call('Lease/LeaseRevoke', message([1, 4])),
      { do: 'restore', bump: 0 },
      wait(200),
      timeToLive(4),
      all,
      range('a', '', 3),
      range('a', '', 4),
      range('a', '', 10),
      watch('w', 9),
      progress('w'),
      put('a', 'other history'),
      messages('w'),
      watch('old', 4),
      messages('old'),
      range('a', '', 9),
    ],
  },
  {
    name: 'restore-bump',
    quotaBytes: 0,
    steps: [
      ...fewPuts,
      grant(4, 30),
      put('leased', 'x', { lease: 4 }),
      { do: 'snapshot' },
      put('a', 'lost'),
      { do: 'restore', bump: 1_000_000_000 },
      wait(200),
      timeToLive(4),
      all,
      range('a', '', 8),
      range('a', '', 1_000_000_007),
      watch('old', 8),
      messages('old'),
      watch('w', 1_000_000_008),
      messages('w'),
      put('a', 'new'),
      put('n', 'new'),
      messages('w'),
      progress('w'),
      messages('w'),
      compact(1_000_000_008),
      compact(1_000_000_009),
      all,
      { do: 'restart' },
      all,
      put('a', 'after'),
    ],
  },
  {
    name: 'quota',
    // Less than an empty database.
    quotaBytes: 16_384,
    steps: [
      alarms,
      // What a nested transaction puts is not counted.
      txn(nestedOp(putOp('nested', 'x'))),
      put('a', 'x'),
      txn(nestedOp(putOp('nested', 'y'))),
      grant(7, 60),
      all,
      remove('nested'),
      range('nested'),
      compact(3),
      put('a', 'x'),
      call('Maintenance/Alarm', message([3, 2])),
      all,
    ],
  },
]
