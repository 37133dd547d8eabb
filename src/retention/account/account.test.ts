import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Term } from '../../election/term.ts'
import type { EtcdClient } from '../../etcd/client.ts'
import { EtcdError } from '../../etcd/errors.ts'
import { type Log, silentLog } from '../../lib/log/log.ts'
import { Account } from './account.ts'
import { decodeAccount, encodeAccount, Totals } from './totals.ts'

const key = { cluster: 'c', namespace: 'n', name: 'e' }

/** One key of etcd, and the revision of the leader's key. */
class FakeEtcd {
  value: Buffer | undefined
  leader = 1
  /** Faults of the next writes: lost before or after they are applied. */
  readonly faults: ('before' | 'after')[] = []

  async range() {
    return { kvs: this.value === undefined ? [] : [{ value: this.value }] }
  }

  async txn({ compare, success }: { compare: { to: number }[]; success: { value: Buffer }[] }) {
    const fault = this.faults.shift()
    const timeout = () => new EtcdError({ kind: 'timeout', message: 'no response' })
    if (fault === 'before') throw timeout()
    const succeeded = compare[0]?.to === this.leader
    if (succeeded) this.value = success[0]?.value
    if (fault === 'after') throw timeout()
    return { succeeded }
  }
}

function termOf(revision: number): Term & { isOver: boolean } {
  return {
    isOver: false,
    signal: new AbortController().signal,
    revision,
    isHeld() {
      return !this.isOver
    },
    heldUntil: Number.POSITIVE_INFINITY,
  }
}

function accountOn(etcd: FakeEtcd, replica: string, log: Log = silentLog) {
  const used = { policy: 'p1', now: 0 }
  const account = new Account({
    client: etcd as unknown as EtcdClient,
    key: 'account',
    leaderKey: 'leader',
    replica,
    policy: () => used.policy,
    clock: { now: () => used.now },
    log,
  })
  /** Runs the loop once. */
  const round = async () => {
    const ending = new AbortController()
    const running = account.run(ending.signal)
    await new Promise((resolve) => setImmediate(resolve))
    ending.abort()
    await running
  }
  return { account, used, round }
}

const storedIn = (etcd: FakeEtcd) =>
  etcd.value && decodeAccount(etcd.value)?.totals.get('expired', 'r')

test('account: continues with the totals of the previous sweeper', async () => {
  const etcd = new FakeEtcd()
  const before = new Totals()
  before.add('expired', 'r', 10)
  etcd.value = encodeAccount({ replica: 'old', policy: 'p1', totals: before })
  const { account, round } = accountOn(etcd, 'new')
  const term = termOf(1)
  account.begin(term)
  // Counted before the totals were read.
  account.expired('r')
  await round()
  assert.deepEqual([storedIn(etcd), account.totals.get('expired', 'r')], [11, 11])
  account.expired('r')
  account.evicted('b', key)
  await account.end(term)
  assert.equal(storedIn(etcd), 12)
  assert.equal(account.own.get('expired', 'r'), 2)
  assert.equal(account.totals.get('namespaces', 'c/n'), 1)
})

test('account: repeats a failed write and counts once whether it was applied or not', async () => {
  for (const fault of ['before', 'after'] as const) {
    const etcd = new FakeEtcd()
    const { account, round } = accountOn(etcd, 'a')
    account.begin(termOf(1))
    account.expired('r')
    etcd.faults.push(fault)
    await round()
    await round()
    assert.equal(storedIn(etcd), 1, fault)
    account.expired('r')
    await round()
    assert.equal(storedIn(etcd), 2, fault)
  }
})

test('account: is written only by the leader', async () => {
  const etcd = new FakeEtcd()
  const { account, round } = accountOn(etcd, 'a')
  const term = termOf(1)
  account.begin(term)
  etcd.leader = 2
  account.expired('r')
  await round()
  await account.end(term)
  assert.equal(etcd.value, undefined)
})

test('account: warns once when the policy of the sweeper differs, but not during a rollout', async () => {
  const etcd = new FakeEtcd()
  const lines: string[] = []
  const log = { ...silentLog, warn: (line: string) => lines.push(line) } as Log
  const { used, round } = accountOn(etcd, 'here', log)
  const write = (policy: string, replica = 'there') => {
    etcd.value = encodeAccount({ replica, policy, totals: new Totals() })
  }
  const after = async (ms: number) => {
    used.now += ms
    await round()
  }
  write('p2')
  await after(0)
  await after(60_000)
  assert.equal(lines.length, 0)
  // This replica has the new file as well.
  used.policy = 'p2'
  await after(1_000)
  used.policy = 'p1'
  await after(61_000)
  assert.equal(lines.length, 0)
  await after(121_000)
  await after(121_000)
  assert.equal(lines.length, 1)
  // Written by this replica when it led.
  write('p3', 'here')
  await after(1_000)
  await after(200_000)
  assert.equal(lines.length, 1)
})
