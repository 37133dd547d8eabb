import assert from 'node:assert/strict'
import { chmod, chown, mkdir, mkdtemp, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { CertificateAuthority } from '../../support/certs.ts'
import { eventually } from '../../support/eventually.ts'
import { runToEnd, startProgram, Tidings } from '../../support/tidings.ts'

const NO_ETCD = '--etcd-servers=http://127.0.0.1:1'
const AS_ADA = { headers: { authorization: 'Bearer ada-token' } }
const ROLE = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: { name: reader }
rules: [{ apiGroups: [events.k8s.io], resources: [events], verbs: [get] }]
`
const POLICY = 'apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{ level: None }]\n'
const CLUSTERS = `apiVersion: tidings.dev/v1alpha1
kind: ClusterConfiguration
clusters: [{name: a}]
`
const RETENTION = `apiVersion: tidings.dev/v1alpha1
kind: RetentionPolicy
rules: [{type: Warning, lifetime: 7d}]
`
const LIMITS = `apiVersion: eventratelimit.admission.k8s.io/v1alpha1
kind: Configuration
limits: [{ type: Server, qps: 1, burst: 1 }]
`
const KUBECONFIG = `apiVersion: v1
kind: Config
clusters: [{ name: c, cluster: { server: "https://127.0.0.1:1/" } }]
users: [{ name: u, user: { token: t } }]
contexts: [{ name: x, context: { cluster: c, user: u } }]
current-context: x
`

describe('files that other users of the host can write or read', () => {
  let folder: string
  let pem: { readonly ca: string; readonly cert: string; readonly key: string }
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tidings-files-'))
    const authority = await CertificateAuthority.create('files')
    const { cert, key } = await authority.issueServer(['127.0.0.1'])
    pem = { ca: String(authority.cert), cert: String(cert), key: String(key) }
  })
  after(() => rm(folder, { recursive: true, force: true }))

  const write = async (name: string, text: string, mode = 0o600): Promise<string> => {
    const path = join(folder, name)
    await writeFile(path, text)
    await chmod(path, mode)
    return path
  }

  test('a world-writable file fails the start, and the log names the file and the fix', async () => {
    await mkdir(join(folder, 'roles'))
    const certificate = `--tls-cert-file=${await write('tls.crt', pem.cert)}`
    const audit = `--audit-log-path=${join(folder, 'audit.log')}`
    const cases: readonly (readonly [flag: string, file: string, ...more: string[]])[] = [
      ['--token-auth-file', await write('tokens.csv', 'ada-token,ada,1\n')],
      ['--client-ca-file', await write('ca.crt', pem.ca)],
      ['--rbac-policy-path', await write('roles/role.yaml', ROLE)],
      ['--audit-policy-file', await write('audit.yaml', POLICY), audit],
      ['--clusters-file', await write('clusters.yaml', CLUSTERS)],
      ['--retention-policy-file', await write('retention.yaml', RETENTION)],
      ['--event-rate-limit-config-file', await write('limits.yaml', LIMITS)],
      ['--authentication-token-webhook-config-file', await write('webhook.yaml', KUBECONFIG)],
      ['--tls-private-key-file', await write('tls.key', pem.key), certificate],
      ['--etcd-cafile', await write('etcd-ca.crt', pem.ca), '--etcd-servers=https://127.0.0.1:1'],
    ]
    const ends = cases.map(async ([flag, file, ...more]) => {
      await chmod(file, 0o606)
      const etcd = more.some((flag) => flag.startsWith('--etcd-servers')) ? [] : [NO_ETCD]
      const { code, stderr } = await runToEnd([
        ...etcd,
        '--secure-port=0',
        '--bind-address=127.0.0.1',
        // One folder each: of two processes that create a pair in one folder, one may read the key
        // of the other.
        `--cert-dir=${file}.certs`,
        `${flag}=${file}`,
        ...more,
      ])
      assert.equal(code, 1, `${flag}: ${stderr}`)
      const problem = `${file} can be written by every user of this host (mode 0606): chmod o-w it`
      assert.ok(stderr.includes(problem) && stderr.includes(flag), stderr)
    })
    await Promise.all(ends)
  })

  test('a file that becomes world-writable at run time is not reloaded, and the loaded content stays', async () => {
    const tokens = await write('followed.csv', 'ada-token,ada,1\n')
    await using server = await Tidings.start([NO_ETCD, `--token-auth-file=${tokens}`])
    await chmod(tokens, 0o666)
    const line = await server.logged('Token file not reloaded')
    assert.match(String(line['err']), /can be written by every user of this host/)
    await writeFile(tokens, 'eve-token,eve,1,"system:masters"\n')
    const asEve = { headers: { authorization: 'Bearer eve-token' } }
    await new Promise((resolve) => setTimeout(resolve, 1500))
    assert.equal((await server.ask('/version', asEve)).status, 401)
    assert.equal((await server.ask('/version', AS_ADA)).status, 200)
    await chmod(tokens, 0o600)
    await server.logged('Token file reloaded')
    assert.equal((await server.ask('/version', asEve)).status, 200)
  })

  test('other open permissions cause one warning for each file at start', async () => {
    const shared = join(folder, 'shared')
    await mkdir(shared)
    await chmod(shared, 0o777)
    const sticky = join(folder, 'sticky')
    await mkdir(sticky)
    await chmod(sticky, 0o1777)
    const tokens = await write('open.csv', 'ada-token,ada,1\n', 0o664)
    const ca = await write('shared/ca.crt', pem.ca, 0o644)
    const policy = await write('sticky/audit.yaml', POLICY, 0o644)
    const limits = await write('limits-of-another.yaml', LIMITS, 0o644)
    await chown(limits, 12345, 12345)
    await using server = await Tidings.start([
      NO_ETCD,
      `--token-auth-file=${tokens}`,
      `--client-ca-file=${ca}`,
      `--audit-policy-file=${policy}`,
      `--audit-log-path=${join(folder, 'audit.log')}`,
      `--event-rate-limit-config-file=${limits}`,
    ])
    await server.until('/livez/ping', ({ status }) => status === 200, 5000)
    const warnings = server.log.filter(({ msg }) => msg === 'File permissions are too open')
    const found = warnings.map(({ flag, mode, problems }) => [flag, mode, problems])
    assert.deepEqual(found.sort(), [
      [
        '--client-ca-file',
        '0644',
        ['every user of this host can replace it, since its folder is world-writable'],
      ],
      ['--event-rate-limit-config-file', '0644', ['its owner is another user, 12345']],
      [
        '--token-auth-file',
        '0664',
        ['its group can write it', 'every user of this host can read the secret in it'],
      ],
    ])
  })

  test('files of mode 0600 cause no warning', async () => {
    const tokens = await write('good.csv', 'ada-token,ada,1\n')
    await using server = await Tidings.start([NO_ETCD, `--token-auth-file=${tokens}`])
    await server.until('/livez/ping', ({ status }) => status === 200, 5000)
    assert.deepEqual(
      server.log.filter(({ msg }) => msg === 'File permissions are too open'),
      [],
    )
  })

  test('--cert-dir is created for its owner alone, and so is the key in it', async () => {
    const certs = join(folder, 'made/by/us')
    const child = startProgram([NO_ETCD, '--secure-port=0', `--cert-dir=${certs}`])
    try {
      await eventually('there is a certificate', () =>
        stat(join(certs, 'tidings.crt')).then(
          () => true,
          () => false,
        ),
      )
    } finally {
      child.kill('SIGKILL')
    }
    for (const path of ['made', 'made/by', 'made/by/us']) {
      assert.equal((await stat(join(folder, path))).mode & 0o777, 0o700, path)
    }
    assert.equal((await stat(join(certs, 'tidings.key'))).mode & 0o777, 0o600)
  })
})
