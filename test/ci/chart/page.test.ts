/**
 * Follows docs/how-to/deploy-on-kubernetes.md. Blocks `sh cluster` run as they are, one after the other,
 * at a real API server; blocks `sh client` too, with a replica that is started from what the API server
 * then has, in place of a node. Not run: `sh image`, which needs a registry or a node, and `sh nodes`.
 * Without an API server, every `helm install` and `helm upgrade` of the page is rendered.
 */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { promisify } from 'node:util'
import { blocksOf } from '../../../tools/markdown.ts'
import { CertificateAuthority } from '../../support/certs.ts'
import type { Manifest } from '../../support/chart.ts'
import { defineCustomResources, startInCluster } from '../../support/chart-cluster.ts'
import { startEtcd } from '../../support/etcd.ts'
import { eventually } from '../../support/eventually.ts'
import {
  KUBE_ADMIN_TOKEN,
  KubeApiserver,
  withoutKubeApiserver,
} from '../../support/kube-apiserver.ts'

const root = join(import.meta.dirname, '../../..')
const page = await readFile(join(root, 'docs/how-to/deploy-on-kubernetes.md'), 'utf8')
const blocks = blocksOf(page).filter(({ language }) => /^sh\b/.test(language))
const NAMESPACE = 'tidings'
/** Variables that a later block of the page uses. */
const KEPT = 'TOKEN ETCD'
const BLOCK_MS_MAX = 60_000
const FOLLOWING_MS_MAX = 30_000

test('every block of the page says where it runs', () => {
  const known = ['sh image', 'sh cluster', 'sh nodes', 'sh client']
  assert.deepEqual(
    blocks.map(({ language }) => language).filter((language) => !known.includes(language)),
    [],
  )
})

test('every release of the page can be rendered', async () => {
  await using folder = await Folder.open()
  // Stands for every command that needs a cluster.
  const reads = `[[ " $* " == *" -f - "* ]] && cat > /dev/null`
  await folder.program('kubectl', `${reads}\necho registry.example.com/etcd:3.5.30`)
  const real = join(root, '.cache/helm/helm')
  const rendered = `set -- template "\${@:2}"`
  await folder.program('helm', `case $1 in install|upgrade) ${rendered}; exec ${real} "$@";; esac`)
  for (const block of blocks.filter(({ language }) => language === 'sh cluster')) {
    await folder.run(block.text)
  }
})

describe('the page at a real API server', { skip: withoutKubeApiserver }, () => {
  test('is followed from the first command to the last', async () => {
    await using kube = await KubeApiserver.start()
    await using folder = await Folder.open()
    await folder.program('helm', `exec ${join(root, '.cache/helm/helm')} "$@"`)
    const kubectl = join(root, '.cache/kubectl-1.36/usr/bin/kubectl')
    await folder.program('kubectl', `exec ${kubectl} --cache-dir "$HOME/cache" "$@"`)
    await writeFile(join(folder.path, 'kubeconfig'), kube.kubeconfig(KUBE_ADMIN_TOKEN))
    await prepare(kube)
    const seen: string[] = []
    for (const { language, text } of blocks) {
      if (language === 'sh cluster') {
        const [output] = await Promise.all([folder.run(text), ...finalizers(kube, text)])
        seen.push(output)
      }
      if (language === 'sh client') seen.push(await asClient(kube, folder, text))
    }
    const all = seen.join('')
    assert.match(all, /^local +1 .* Following/m)
    assert.match(all, /^shop .*web-0 *$/m)
    assert.match(all, /Rollback was a success/)
    assert.match(all, /deployment\.apps\/tidings configured/)
  })
})

/** The folder in which the page is followed: the chart, files of the reader, and programs. */
class Folder implements AsyncDisposable {
  readonly path: string

  static async open(): Promise<Folder> {
    const folder = new Folder(await mkdtemp(join(tmpdir(), 'tidings-page-')))
    const { path } = folder
    await cp(join(root, 'charts'), join(path, 'charts'), { recursive: true })
    await symlink(join(root, 'deploy'), join(path, 'deploy'))
    // An API server that was built from sources reports v0.0.0.
    const about = join(path, 'charts/tidings/Chart.yaml')
    const text = await readFile(about, 'utf8')
    await writeFile(about, text.replace(/^kubeVersion: .*/m, ''))
    const authority = await CertificateAuthority.create('etcd')
    const { cert, key } = await authority.issueClient('tidings')
    await writeFile(join(path, 'etcd-ca.crt'), authority.cert)
    await writeFile(join(path, 'etcd-client.crt'), cert)
    await writeFile(join(path, 'etcd-client.key'), key)
    await writeFile(join(path, 'prod-eu.kubeconfig'), 'apiVersion: v1\nkind: Config\n')
    await writeFile(join(path, 'variables'), '')
    return folder
  }

  private constructor(path: string) {
    this.path = path
  }

  async program(name: string, script: string): Promise<void> {
    await writeFile(join(this.path, name), `#!/usr/bin/env bash\n${script}\n`, { mode: 0o755 })
  }

  /** Runs the commands of a block; returns what they print. */
  async run(text: string): Promise<string> {
    const script = `set -euo pipefail\n. ./variables\n${text}\ndeclare -p ${KEPT} > variables 2> /dev/null || true\n`
    const env = {
      // biome-ignore lint/style/noProcessEnv: bash, openssl and others of the machine.
      PATH: `${this.path}:${process.env['PATH']}`,
      HOME: this.path,
      KUBECONFIG: join(this.path, 'kubeconfig'),
    }
    const options = { cwd: this.path, env, timeout: BLOCK_MS_MAX }
    const { stdout } = await promisify(execFile)('bash', ['-c', script], options)
    return stdout
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.path, { recursive: true })
  }
}

/** What a cluster has before the page begins. */
async function prepare(kube: KubeApiserver): Promise<void> {
  await kube.create('/api/v1/namespaces/kube-system/pods', {
    metadata: { name: 'etcd-0', labels: { component: 'etcd' } },
    spec: { containers: [{ name: 'etcd', image: 'registry.example.com/etcd:3.5.30' }] },
  })
  await kube.create('/api/v1/namespaces/shop/events', {
    metadata: { name: 'web-0.1' },
    involvedObject: { kind: 'Pod', namespace: 'shop', name: 'web-0' },
    reason: 'Started',
    type: 'Normal',
    message: 'web-0',
  })
  await defineCustomResources(kube)
}

/** Does what a controller manager does for a namespace that is deleted. */
function finalizers(kube: KubeApiserver, text: string): readonly Promise<void>[] {
  if (!text.includes('kubectl delete namespace')) return []
  const path = `/api/v1/namespaces/${NAMESPACE}`
  const finalize = async () => {
    const found = JSON.parse((await kube.ask('GET', path)).body)
    if (found.status?.phase !== 'Terminating') return false
    for (const kind of ['secrets', 'configmaps']) await kube.ask('DELETE', `${path}/${kind}`)
    await kube.ask('PUT', `${path}/finalize`, { body: { ...found, spec: { finalizers: [] } } })
    return true
  }
  return [eventually('the namespace is deleted', finalize, BLOCK_MS_MAX)]
}

/** Runs a block with a replica that has what the pods would have. */
async function asClient(kube: KubeApiserver, folder: Folder, text: string): Promise<string> {
  const manifests = (
    await Promise.all([
      listed(kube, `/apis/apps/v1/namespaces/${NAMESPACE}/deployments`, 'Deployment'),
      listed(kube, `/api/v1/namespaces/${NAMESPACE}/secrets`, 'Secret'),
      listed(kube, `/api/v1/namespaces/${NAMESPACE}/configmaps`, 'ConfigMap'),
    ])
  ).flat()
  await using etcd = await startEtcd()
  await using replica = await startInCluster(kube, manifests, {
    namespace: NAMESPACE,
    etcdServers: etcd.endpoints.join(),
  })
  const commands = text.replaceAll('localhost:6443', `localhost:${replica.server.port}`)
  let output = ''
  const isFollowing = async () => {
    output = await folder.run(commands)
    return output.includes('Following')
  }
  await eventually('the mirror follows', isFollowing, FOLLOWING_MS_MAX)
  return output
}

async function listed(
  kube: KubeApiserver,
  path: string,
  kind: string,
): Promise<readonly Manifest[]> {
  const { items } = JSON.parse((await kube.ask('GET', path)).body)
  return items.map((item: object) => ({ ...item, kind }))
}
