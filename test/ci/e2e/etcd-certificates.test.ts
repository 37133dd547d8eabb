import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { CertificateAuthority, type KeyPair } from '../../support/certs.ts'
import { EtcdMember, etcdBinary } from '../../support/etcd.ts'
import { reserveEtcdPorts } from '../../support/ports.ts'
import { Tidings } from '../../support/tidings.ts'

/** Time for a replica to load a certificate before it expires. */
const LIFETIME_MS = 5000
const isGreen = ({ status }: { readonly status: number }): boolean => status === 200

/** An etcd with certificates in a folder, and a replica that follows the files there. */
class Pair implements AsyncDisposable {
  readonly folder: string
  readonly member: EtcdMember
  readonly replica: Tidings
  readonly #made: AsyncDisposableStack

  static async start(authority: CertificateAuthority): Promise<Pair> {
    await using made = new AsyncDisposableStack()
    const folder = await mkdtemp(join(tmpdir(), 'tidings-etcd-certs-'))
    made.defer(() => rm(folder, { recursive: true, force: true }))
    const file = (name: string): string => join(folder, name)
    await writeServer(folder, authority)
    await writeClient(folder, [authority], await authority.issueClient('tidings'))
    const ports = await reserveEtcdPorts()
    const member = new EtcdMember({
      binary: etcdBinary,
      name: 'm0',
      dataDir: file('m0'),
      ports,
      cluster: [{ name: 'm0', peerPort: ports.peer }],
      tls: { ca: file('server-ca.pem'), cert: file('server.pem'), key: file('server-key.pem') },
      args: ['--unsafe-no-fsync'],
    })
    made.defer(() => member.kill())
    await member.start()
    const started = await Tidings.start([
      `--etcd-servers=${member.endpoint}`,
      `--etcd-cafile=${file('ca.pem')}`,
      `--etcd-certfile=${file('client.pem')}`,
      `--etcd-keyfile=${file('client-key.pem')}`,
    ])
    const replica = made.use(started)
    await replica.until('/readyz', isGreen, 30_000)
    return new Pair({ folder, member, replica, made: made.move() })
  }

  private constructor(parts: {
    readonly folder: string
    readonly member: EtcdMember
    readonly replica: Tidings
    readonly made: AsyncDisposableStack
  }) {
    this.folder = parts.folder
    this.member = parts.member
    this.replica = parts.replica
    this.#made = parts.made
  }

  /** The expiry of the file of a flag, from the metric, in seconds. */
  async expiry(flag: string): Promise<number> {
    const { body } = await this.replica.ask('/metrics')
    const start = `tidings_certificate_expiration_timestamp_seconds{flag="${flag}"} `
    const line = body.split('\n').find((candidate) => candidate.startsWith(start))
    return Number(line?.slice(start.length))
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#made.disposeAsync()
  }
}

async function writeServer(folder: string, authority: CertificateAuthority): Promise<void> {
  const { cert, key } = await authority.issueServer()
  await replace(folder, 'server-ca.pem', authority.cert)
  await replace(folder, 'server.pem', cert)
  await replace(folder, 'server-key.pem', key)
}

async function writeClient(
  folder: string,
  authorities: readonly CertificateAuthority[],
  { cert, key }: KeyPair,
): Promise<void> {
  const bundle = authorities.map((authority) => authority.cert.toString()).join('\n')
  await replace(folder, 'ca.pem', bundle)
  await replace(folder, 'client-key.pem', key)
  await replace(folder, 'client.pem', cert)
}

async function replace(folder: string, name: string, content: Buffer | string): Promise<void> {
  const temporary = join(folder, `${name}.new`)
  await writeFile(temporary, content, { mode: 0o600 })
  await rename(temporary, join(folder, name))
}

const endOf = ({ cert }: Pick<KeyPair, 'cert'>): number =>
  new X509Certificate(cert).validToDate.getTime() / 1000

describe('certificates for etcd', { concurrency: true }, () => {
  test('a replica whose certificate has expired reports it, and recovers when it is renewed', async () => {
    const authority = await CertificateAuthority.create()
    await using pair = await Pair.start(authority)
    const { member, replica, folder } = pair
    const short = await authority.issueClient('tidings', [], LIFETIME_MS)
    await writeClient(folder, [authority], short)
    await replica.logged('Credentials for etcd reloaded')
    assert.equal(await pair.expiry('--etcd-certfile'), endOf(short))
    assert.equal(await pair.expiry('--etcd-cafile'), endOf(authority))
    assert.ok((await pair.expiry('--cert-dir')) > Date.now() / 1000)
    await sleep(Math.max(0, endOf(short) * 1000 + 1000 - Date.now()))
    // Existing connections outlive the certificate; new ones fail.
    await member.stop()
    await replica.until('/readyz/datastore', ({ body }) => /ECONNREFUSED/.test(body), 20_000)
    await member.start()
    await replica.until(
      '/readyz/datastore',
      ({ status, body }) => status === 500 && /TLS: .*alert.*certificate/.test(body),
      20_000,
    )
    const renewed = await authority.issueClient('tidings')
    await writeClient(folder, [authority], renewed)
    await replica.until('/readyz', isGreen, 20_000)
    assert.equal(await pair.expiry('--etcd-certfile'), endOf(renewed))
  })

  test('the authority of etcd and its clients is replaced while the replica stays ready', async () => {
    const old = await CertificateAuthority.create('old')
    await using pair = await Pair.start(old)
    const { member, replica, folder } = pair
    const next = await CertificateAuthority.create('next')
    // Trust both first, then change both ends.
    await writeClient(folder, [old, next], await old.issueClient('tidings'))
    await replica.logged('Credentials for etcd reloaded')
    await replica.until('/readyz', isGreen, 5000)
    await writeServer(folder, next)
    await writeClient(folder, [old, next], await next.issueClient('tidings'))
    await sleep(2500)
    // etcd reads its authorities at start only: until then the old connection is in use.
    assert.equal((await replica.ask('/readyz')).status, 200)
    await member.stop()
    await member.start()
    await replica.until('/readyz', isGreen, 10_000)
    await writeClient(folder, [next], await next.issueClient('tidings'))
    await sleep(1500)
    assert.equal((await replica.ask('/readyz')).status, 200)
  })
})
