import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { EtcdClient } from '../../../src/etcd/client.ts'
import { type Log, silentLog } from '../../../src/lib/log/log.ts'
import { PrefixCheck } from '../../../src/storage/etcd/prefix-check.ts'
import { readRelease, recordedVersions } from '../../releases/recorded-release.ts'
import { type EtcdCluster, startEtcd } from '../../support/etcd.ts'

const uuid = '1671a4dd-d9f3-4e8d-a7d2-67b02bcca21f'
/** One valid value of each key that this version knows. */
const known: Readonly<Record<string, string>> = {
  'control/sweeper': 'vm/12925 --event-ttl=1h0m0s --etcd-compaction-interval=1m0s',
  'control/mirror-leaders/prod-eu': 'vm/12925',
  'control/compaction': '{"replica":"vm/12925","compactedRevision":46}',
  'control/ages':
    '{"replica":"vm/1","created":5,"lease":"46","renewedMsAgo":5,"wallTimeMs":17,"notes":[46,57]}',
  'control/account': '{"replica":"vm/1","policy":"b23cb512","expired":{},"evicted":{"small":10}}',
  'control/mirrors/prod-eu':
    '{"replica":"vm/1","term":48,"sequence":9,"origin":"cc7f","epoch":0,"positions":{"":"5"}}',
}

describe('the check of the keys under a prefix', () => {
  let etcd: EtcdCluster
  let client: EtcdClient
  let prefixes = 0
  before(async () => {
    etcd = await startEtcd()
    client = new EtcdClient({ endpoints: etcd.endpoints, defaultTimeoutMs: 5000 })
  })
  after(async () => {
    client.close()
    await etcd[Symbol.asyncDispose]()
  })

  async function put(prefix: string, keys: Readonly<Record<string, string>>): Promise<void> {
    const puts = Object.entries(keys).map(([key, value]) => ({
      type: 'put' as const,
      key: Buffer.from(`${prefix}/${key}`),
      value: Buffer.from(value, 'latin1'),
    }))
    for (let at = 0; at < puts.length; at += 100) {
      await client.txn({ success: puts.slice(at, at + 100) })
    }
  }

  /** The message of the failure without the prefix, or undefined when the check passes. */
  async function failure(
    keys: Readonly<Record<string, string>>,
    log: Log = silentLog,
  ): Promise<string | undefined> {
    const prefix = `/p${++prefixes}`
    await put(prefix, keys)
    const check = new PrefixCheck({ client, prefix, log })
    try {
      await check.run(Promise.resolve(), new AbortController().signal)
      assert.equal(check.pending, undefined)
      return undefined
    } catch (error) {
      return String(error).replaceAll(prefix, '')
    }
  }

  test('every known key passes alone, and all of them together', async () => {
    for (const [key, value] of Object.entries(known)) {
      assert.equal(await failure({ [key]: value }), undefined, key)
    }
    assert.equal(await failure({ ...known, 'events/': uuid }), undefined)
  })

  test('every control key of recorded releases and of the first builds passes', async () => {
    for (const version of recordedVersions()) {
      const keys = readRelease(version)
        .keys.map(({ key, value }) => [key.replace('/tidings/', ''), value] as const)
        .filter(([key]) => !/^events\/./.test(key))
      assert.ok(keys.length > 5)
      assert.equal(await failure(Object.fromEntries(keys)), undefined, version)
    }
    const first = {
      'control/sweeper': 'vm/7',
      'control/compaction': known['control/compaction'] ?? '',
    }
    assert.equal(await failure(first), undefined)
  })

  const foreignValues = [
    '',
    'robot7',
    'alice:100EUR',
    '42',
    'null',
    '[]',
    '{}',
    '{"replica":"a"}',
    '{"replica":7}',
    '{"owner":"vm/12925"}',
    '"vm/12925"',
    'vm/12925\nnext',
    'vm/x',
    'a/vm/12925',
    'k8s\0\n',
    '{"replica":"vm/1","policy":"\xff"}',
  ]

  test('a known key with a value of another form fails the check, also beside our own', async () => {
    for (const key of Object.keys(known)) {
      for (const value of foreignValues) {
        const message = await failure({ ...known, 'events/': uuid, [key]: value })
        assert.match(message ?? 'passed', new RegExp(`etcd holds "/${key}"`), value)
      }
    }
  })

  test('a known key with the value of another known key fails the check', async () => {
    const records = Object.keys(known).filter((key) => known[key]?.startsWith('{'))
    for (const key of records) {
      for (const other of records.filter((each) => each !== key)) {
        const message = await failure({ [key]: known[other] ?? '' })
        assert.match(message ?? 'passed', new RegExp(`etcd holds "/${key}"`), other)
      }
    }
  })

  test('an unknown key passes beside proof that the prefix is ours, if its value names a replica', async () => {
    const lines: unknown[] = []
    const log = {
      ...silentLog,
      info: (msg: string, fields?: object) => lines.push({ msg, ...fields }),
    }
    const later = {
      'control/audit-leader': 'vm/7 --any',
      'control/shards/eu-1.example.org': '{"replica":"vm/7","version":2}',
    }
    const proofs = [...Object.entries(known), ['events/', uuid] as const]
    for (const [key, value] of proofs) {
      assert.equal(await failure({ ...later, [key]: value }, log), undefined, key)
    }
    assert.deepEqual(lines[0], {
      msg: 'Unknown control keys are left unchanged',
      etcdKey: `/p${prefixes - proofs.length + 1}/control/audit-leader`,
      count: 2,
    })
    assert.match((await failure(later)) ?? 'passed', /etcd holds "\/control\/audit-leader"/)
    for (const value of foreignValues) {
      const message = await failure({ ...known, 'control/zebra': value })
      assert.match(message ?? 'passed', /etcd holds "\/control\/zebra"/, value)
    }
  })

  test('keys in a form that no version writes fail the check, also in the folders of mirrors', async () => {
    for (const key of ['mirrors/a/b', 'mirrors/A', 'mirror-leaders/', 'a/b/c', 'Zoo', '']) {
      const message = await failure({ ...known, [`control/${key}`]: 'vm/1' })
      assert.match(message ?? 'passed', new RegExp(`etcd holds "/control/${key}"`))
    }
  })

  test('a foreign value behind hundreds of ours fails the check', async () => {
    const many = Object.fromEntries(
      Array.from({ length: 300 }, (_, at) => [`control/mirror-leaders/c${at}`, 'vm/1']),
    )
    assert.equal(await failure(many), undefined)
    const last = await failure({ ...many, 'control/mirror-leaders/zoo': 'k8s\0' })
    assert.match(last ?? 'passed', /etcd holds "\/control\/mirror-leaders\/zoo"/)
    const texts = Object.fromEntries(
      Array.from({ length: 120 }, (_, at) => [`control/a${at}`, 'vm/1']),
    )
    const behind = await failure({ ...known, ...texts, 'control/ab/pods/default/web': 'k8s\0' })
    assert.match(behind ?? 'passed', /etcd holds "\/control\/ab\/pods\/default\/web"/)
  })

  test('values of a megabyte behind hundreds of small ones are read a few at a time', async () => {
    const prefix = `/p${++prefixes}`
    const small = Array.from({ length: 300 }, (_, at) => [`control/mirror-leaders/c${at}`, 'vm/1'])
    await put(prefix, Object.fromEntries(small))
    const record = known['control/mirrors/prod-eu']?.replace('"cc7f"', `"${'c'.repeat(1_000_000)}"`)
    for (let at = 0; at < 60; at++) await put(prefix, { [`control/mirrors/c${at}`]: record ?? '' })
    const failed: string[] = []
    const observed = new EtcdClient({
      endpoints: etcd.endpoints,
      defaultTimeoutMs: 5000,
      onCall: ({ path, hasFailed }) => hasFailed && failed.push(path),
    })
    const check = new PrefixCheck({ client: observed, prefix, log: silentLog })
    try {
      await check.run(Promise.resolve(), new AbortController().signal)
    } finally {
      observed.close()
    }
    // The client refuses a response of more than 32 MiB, which etcd has then built in vain.
    assert.ok(!failed.includes('/etcdserverpb.KV/Range'), failed.join())
  })

  test('far more control keys than there are mirrors fail the check at once', async () => {
    const many = Object.fromEntries(
      Array.from({ length: 25_001 }, (_, at) => [`control/mirror-leaders/c${at}`, 'vm/1']),
    )
    const message = await failure(many)
    assert.match(message ?? 'passed', /25001 keys under \/control\/, .*more than tidings writes/)
  })

  test('far more bytes than records of mirrors have fail the check', async () => {
    const prefix = `/p${++prefixes}`
    const record = known['control/mirrors/prod-eu']?.replace('"cc7f"', `"${'c'.repeat(1_000_000)}"`)
    for (let at = 0; at < 68; at++) await put(prefix, { [`control/mirrors/c${at}`]: record ?? '' })
    const check = new PrefixCheck({ client, prefix, log: silentLog })
    await assert.rejects(
      check.run(Promise.resolve(), new AbortController().signal),
      /67108864 bytes under .*more than tidings writes/,
    )
  })
})
