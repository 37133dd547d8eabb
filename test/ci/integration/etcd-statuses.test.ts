/** What a datastore logs of members of several versions. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import http from 'node:http'
import { describe, test } from 'node:test'
import { readChecks } from '../../../src/etcd/member-http.ts'
import { type LogFields, silentLog } from '../../../src/lib/log/log.ts'
import { BackwardWriter } from '../../../src/lib/protobuf.ts'
import { Datastore } from '../../../src/storage/etcd/datastore.ts'
import { RealMember } from '../../simulation/etcd/checks/real-member.ts'
import { type EtcdCluster, startEtcd, startEtcdCluster } from '../../support/etcd.ts'
import { etcdVersions, versionOf } from '../../support/etcd-versions.ts'
import { eventually } from '../../support/eventually.ts'
import { reservePort } from '../../support/ports.ts'

const quotaBytes = 123_456_789
const args = ['--unsafe-no-fsync', `--quota-backend-bytes=${quotaBytes}`]
const { signal } = new AbortController()
const [old, newest] = [versionOf('3.6.14'), versionOf('3.7.1')]

class Followed implements Disposable {
  readonly lines: string[] = []
  readonly datastore: Datastore

  constructor({ endpoints }: Pick<EtcdCluster, 'endpoints'>) {
    const note = (msg: string, fields?: LogFields) => {
      const shown = Object.entries(fields ?? {}).map(([name, value]) => `${name}=${value}`)
      this.lines.push([msg, ...shown].join(' '))
    }
    this.datastore = new Datastore({
      servers: endpoints,
      prefix: '/tidings',
      healthTimeoutMs: 2_000,
      log: { ...silentLog, error: note, warn: note, info: note },
      caFile: undefined,
      certFile: undefined,
      keyFile: undefined,
    })
  }

  async logs(expected: RegExp): Promise<void> {
    const has = () => this.lines.some((line) => expected.test(line))
    await eventually(String(expected), has, 20_000).catch((error) => {
      throw new Error(`${error.message}: ${this.lines.join('\n')}`)
    })
  }

  [Symbol.dispose](): void {
    this.datastore.close()
  }
}

/** Sends a maintenance request with these fields. */
async function order(endpoint: string, path: string, ...fields: (number | bigint | string)[]) {
  const writer = new BackwardWriter(64)
  for (const [index, value] of [...fields.entries()].reverse()) {
    if (typeof value === 'string') writer.bytes(index + 1, Buffer.from(value))
    else writer.number(index + 1, value)
  }
  const member = new RealMember(endpoint)
  const reply = await member.call(`Maintenance/${path}`, writer.finish())
  member.close()
  return reply
}

for (const { name, binary, skip } of etcdVersions) {
  describe(`a datastore of ${name}`, { skip }, () => {
    test('knows the version and the quota of its member', async () => {
      await using etcd = await startEtcd({ binary, args })
      using followed = new Followed(etcd)
      await followed.datastore.open()
      await followed.logs(/^Connected to etcd endpoint=\S+ version=3\.\d+\.\d+ dbBytes=\d+$/)
      const { quotaAlarm } = followed.datastore
      await eventually('the quota is known', () => quotaAlarm.space !== undefined)
      assert.equal(quotaAlarm.space?.budgetBytes, quotaBytes * 0.8)
      assert.equal(followed.lines.length, 1, followed.lines.join('\n'))
    })

    test('logs which member has found corruption, and its check fails', async () => {
      await using etcd = await startEtcd({ binary, encrypted: false })
      using followed = new Followed(etcd)
      const client = await followed.datastore.open()
      const endpoint = etcd.endpoints[0] ?? ''
      const { memberId } = await client.status(endpoint)
      assert.equal(await readChecks(endpoint, { tls: undefined, signal }), 'passes')
      await order(endpoint, 'Alarm', 1, memberId, 2)
      await followed.logs(
        new RegExp(`data of its members differs.* members=${memberId.toString(16)} `),
      )
      const checks = await readChecks(endpoint, { tls: undefined, signal })
      assert.equal(checks, 'fails data_corruption')
      await followed.datastore.checkHealth()
      await order(endpoint, 'Alarm', 2, memberId, 2)
      await followed.logs(/^The corruption alarm of etcd is off/)
    })

    test('has checks over TLS with a client certificate', async () => {
      await using etcd = await startEtcd({ binary, encrypted: true })
      const endpoint = etcd.endpoints[0] ?? ''
      assert.equal(await readChecks(endpoint, { tls: etcd.tls, signal }), 'passes')
      await assert.rejects(readChecks(endpoint, { tls: undefined, signal }))
    })
  })
}

test('an outage logs once which checks the members pass', async () => {
  await using etcd = await startEtcdCluster(3)
  using followed = new Followed(etcd)
  await followed.datastore.open()
  await followed.logs(/^Connected to etcd/)
  await Promise.all([etcd.member(1).kill(), etcd.member(2).kill()])
  const [up, ...down] = etcd.endpoints
  const checks = [`${up} passes`, ...down.map((endpoint) => `${endpoint} does not respond`)]
  await followed.logs(new RegExp(`^The checks of the etcd members.* checks=${checks.join(', ')}$`))
  const lines = followed.lines.filter((line) => line.startsWith('The checks'))
  assert.equal(lines.length, 1)
})

test('an outage logs what proxies return instead of checks', async () => {
  const statuses = [404, 403, 500, 503]
  const proxies = statuses.map((status) =>
    http.createServer((_, response) => response.writeHead(status).end()).listen(0, '127.0.0.1'),
  )
  await Promise.all(proxies.map((proxy) => once(proxy, 'listening')))
  const endpoints = proxies.map((proxy) => {
    const address = proxy.address()
    assert.ok(address !== null && typeof address === 'object')
    return `http://127.0.0.1:${address.port}`
  })
  using followed = new Followed({ endpoints })
  try {
    await followed.datastore.open()
    const [missing, ...others] = endpoints
    const checks = [
      `${missing} has no such checks`,
      ...others.map((endpoint, index) => `${endpoint} returned status ${statuses[index + 1]}`),
    ]
    await followed.logs(
      new RegExp(`^The checks of the etcd members.* checks=${checks.join(', ')}$`),
    )
  } finally {
    followed.datastore.close()
    for (const proxy of proxies) proxy.close().closeAllConnections()
  }
})

test('the quota is known if one of several members does not say it', {
  skip: old.skip,
}, async () => {
  const own = await reservePort()
  // The address for gRPC then serves no metrics.
  const silent = [...args, `--listen-client-http-urls=http://127.0.0.1:${own}`]
  await using etcd = await startEtcdCluster(3, { args })
  for (const [index, changes] of [
    { binary: old.binary },
    { binary: old.binary },
    { args: silent },
  ].entries()) {
    await etcd.member(index).stop()
    await etcd.member(index).start(changes)
  }
  using followed = new Followed(etcd)
  await followed.datastore.open()
  const { quotaAlarm } = followed.datastore
  await eventually('the quota is known', () => quotaAlarm.space !== undefined)
  assert.equal(quotaAlarm.space?.budgetBytes, quotaBytes * 0.8)
  await Promise.all([etcd.member(0).kill(), etcd.member(1).kill()])
  // By then the attempt to read the metrics has failed.
  await followed.logs(/^The checks of the etcd members/)
  const warnings = followed.lines.filter((line) => line.startsWith('The space quota'))
  assert.deepEqual(warnings, [])
})

const skip = old.skip || newest.skip
test('an upgrade and a downgrade of a member are logged', { skip }, async () => {
  await using etcd = await startEtcd({ binary: old.binary })
  using followed = new Followed(etcd)
  await followed.datastore.open()
  await followed.logs(/^Connected to etcd .* version=3\.6\.14 /)
  const member = etcd.member(0)
  await member.stop()
  await member.start({ binary: newest.binary })
  await followed.logs(
    /^The version of an etcd member has changed .* version=3\.7\.1 before=3\.6\.14$/,
  )
  const isEnabled = async () => (await order(member.endpoint, 'Downgrade', 1, '3.6.0')).code === 0
  await eventually('a downgrade is enabled', isEnabled, 20_000)
  await followed.logs(/^etcd is being downgraded target=3\.6\.0 storageVersion=3\.\d\.0 versions=/)
  await order(member.endpoint, 'Downgrade', 2)
  await followed.logs(/^The downgrade of etcd is over versions=\S+ 3\.7\.1$/)
})
