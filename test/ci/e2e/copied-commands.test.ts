/** The kubectl commands that the page copies, pasted into a shell with various kubeconfigs. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { promisify } from 'node:util'
import { kubectlCommand, type Question } from '../../../ui/src/model/commands.ts'
import { findKubectl, OLDEST, RECORDED_WITH, whyNot } from '../../nightly/kubectl/kubectl.ts'
import { type EtcdCluster, startEtcd } from '../../support/etcd.ts'
import { Tidings } from '../../support/tidings.ts'

const run = promisify(execFile)
const TOKEN = 'admin-token'

/** A name that is not that of the certificate, which `tls-server-name` has. */
const OTHER_ADDRESS = '127.0.0.2'

for (const version of [OLDEST, RECORDED_WITH]) {
  describe(`copied commands with kubectl ${version}`, { skip: whyNot(version) }, () => {
    let etcd: EtcdCluster
    let server: Tidings
    let folder: string

    before(async () => {
      etcd = await startEtcd()
      const tokens = join(etcd.member(0).dataDir, '../tokens.csv')
      await writeFile(tokens, `${TOKEN},admin,1,system:masters\n`)
      server = await Tidings.start([
        `--etcd-servers=${etcd.endpoints[0]}`,
        `--token-auth-file=${tokens}`,
        '--bind-address=0.0.0.0',
      ])
      await server.until('/readyz', ({ status }) => status === 200, 10_000)
      folder = server.folder
      await mkdir(join(folder, 'bin'))
      await symlink(findKubectl(version) ?? '', join(folder, 'bin/kubectl'))
      for (const cluster of ['local', 'eu', 'us']) await write(cluster)
    })
    after(async () => {
      await server?.[Symbol.asyncDispose]()
      await etcd?.[Symbol.asyncDispose]()
    })

    async function write(cluster: string): Promise<void> {
      const { status } = await server.ask(`/clusters/${cluster}/api/v1/namespaces/shop/events`, {
        method: 'POST',
        headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
        body: JSON.stringify({
          metadata: { name: 'a', namespace: 'shop' },
          reason: `In-${cluster}`,
          message: 'm',
          type: 'Normal',
          source: { component: 'c' },
          involvedObject: { kind: 'Pod', namespace: 'shop', name: 'web-0' },
        }),
      })
      assert.equal(status, 201)
    }

    /** The reasons that the command for a question prints. */
    async function printed(
      question: Partial<Question>,
      cluster: { readonly server: string; readonly 'tls-server-name'?: string },
    ): Promise<readonly string[]> {
      const kubeconfig = join(folder, 'pasted')
      const config = {
        apiVersion: 'v1',
        kind: 'Config',
        clusters: [
          {
            name: 'c',
            cluster: { ...cluster, 'certificate-authority': join(folder, 'tidings.crt') },
          },
        ],
        users: [{ name: 'u', user: { token: TOKEN } }],
        contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
        'current-context': 'x',
      }
      await writeFile(kubeconfig, JSON.stringify(config))
      const command = kubectlCommand({ cluster: '', namespace: '', selector: '', ...question })
      const PATH = [join(folder, 'bin'), '/usr/bin', '/bin'].join(delimiter)
      const env = { PATH, HOME: folder, KUBECONFIG: kubeconfig }
      const { stdout } = await run('sh', ['-ec', command], { cwd: folder, env })
      return [...stdout.matchAll(/In-\w+/g)].map(([reason]) => reason).sort()
    }

    const base = (address = '127.0.0.1') => `https://${address}:${server.port}`

    test('print the events of a cluster, whichever cluster the kubeconfig is for', async () => {
      for (const path of [
        '',
        '/',
        '/clusters/eu',
        '/clusters/us',
        '/clusters/us/',
        '/clusters/*',
      ]) {
        const found = await printed({ cluster: 'eu' }, { server: `${base()}${path}` })
        assert.deepEqual(found, ['In-eu'], path)
      }
    })

    test('print the events of the default cluster and of all clusters', async () => {
      const selector = 'mentions=Pod/web-0'
      assert.deepEqual(await printed({ selector }, { server: base() }), ['In-local'])
      assert.deepEqual(
        await printed({ cluster: '*', selector }, { server: `${base()}/clusters/us` }),
        ['In-eu', 'In-local', 'In-us'],
      )
    })

    test('check the name of the certificate that the kubeconfig has', async () => {
      const cluster = { server: base(OTHER_ADDRESS), 'tls-server-name': 'localhost' }
      assert.deepEqual(await printed({}, cluster), ['In-local'])
      assert.deepEqual(await printed({ cluster: 'eu' }, cluster), ['In-eu'])
    })
  })
}
