/**
 * The chart and a real Kubernetes API server: it accepts what every value set renders, a release
 * keeps its certificate, and a replica mirrors the cluster with the rights that the chart gives it.
 */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { cp, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { chart, helm, NAMESPACE, render, valueSets } from '../../support/chart.ts'
import { accountToken, defineCustomResources, startInCluster } from '../../support/chart-cluster.ts'
import { eventually } from '../../support/eventually.ts'
import {
  KUBE_ADMIN_TOKEN,
  KubeApiserver,
  withoutKubeApiserver,
} from '../../support/kube-apiserver.ts'

const root = join(import.meta.dirname, '../../..')
const kubectlBinary = join(root, '.cache/kubectl-1.36/usr/bin/kubectl')
const MIRRORED_MS_MAX = 30_000
/** Value sets at a time. */
const CONCURRENCY = 3

describe('the chart at a real API server', { skip: withoutKubeApiserver }, () => {
  let kube: KubeApiserver
  let kubeconfig: string
  /** The chart for any version: a server that was built from sources reports v0.0.0. */
  let anyVersion: string
  before(async () => {
    kube = await KubeApiserver.start({ hasAdmission: true })
    kubeconfig = join(kube.folder, 'kubeconfig')
    await writeFile(kubeconfig, kube.kubeconfig(KUBE_ADMIN_TOKEN), { mode: 0o600 })
    anyVersion = join(kube.folder, 'chart')
    await cp(chart, anyVersion, { recursive: true })
    const about = await readFile(join(chart, 'Chart.yaml'), 'utf8')
    await writeFile(join(anyVersion, 'Chart.yaml'), about.replace(/^kubeVersion: .*/m, ''))
    for (const name of [NAMESPACE, 'tidings', 'shop', 'billing', 'default', '123', 'on']) {
      const body = { metadata: { name } }
      await kube.ask('POST', '/api/v1/namespaces', { body })
    }
    await defineCustomResources(kube)
  })
  after(() => kube[Symbol.asyncDispose]())

  const kubectl = (args: readonly string[], input = '') =>
    new Promise<string>((resolve, reject) => {
      const all = ['--kubeconfig', kubeconfig, '--cache-dir', join(kube.folder, 'cache'), ...args]
      const child = execFile(kubectlBinary, all, (error, stdout, stderr) => {
        if (error === null) resolve(stdout)
        else reject(new Error(stderr))
      })
      child.stdin?.end(input)
    })
  const accept = ['apply', '--dry-run=server', '--validate=strict']

  describe('value sets', { concurrency: CONCURRENCY }, () => {
    for (const set of valueSets) {
      test(`accepts ${set}`, async () => {
        const manifests = await render(set)
        const list = { apiVersion: 'v1', kind: 'List', items: manifests }
        const said = await kubectl([...accept, '-f', '-'], JSON.stringify(list))
        assert.equal(said.match(/server dry run/g)?.length, manifests.length, said)
      })
    }
  })

  test('the kustomize overlay is accepted', async () => {
    const said = await kubectl([...accept, '-k', join(root, 'deploy/overlays/example')])
    assert.match(said, /deployment\.apps\/tidings created \(server dry run\)/)
  })

  test('a release keeps its self-signed certificate until its names change', async () => {
    const install = (verb: string, ...more: readonly string[]) => {
      const values = ['-f', `${chart}/ci/trial.yaml`, '--namespace', NAMESPACE]
      return succeed([verb, 'kept', anyVersion, ...values, '--kubeconfig', kubeconfig, ...more])
    }
    const secret = async () => {
      const path = `/api/v1/namespaces/${NAMESPACE}/secrets/kept-tidings-tls`
      return JSON.parse((await kube.ask('GET', path)).body).data
    }
    await install('install')
    const first = await secret()
    await install('upgrade', '--set', 'replicas=2')
    assert.deepEqual(await secret(), first)
    await install('upgrade', '--set', 'tls.extraDNSNames={events.example.com}')
    const second = await secret()
    assert.notEqual(second['tls.crt'], first['tls.crt'])
    // It renders nothing, as docs/how-to/deploy-on-kubernetes.md says.
    const where = ['--namespace', NAMESPACE, '--kubeconfig', kubeconfig]
    await succeed(['rollback', 'kept', '1', ...where])
    assert.deepEqual(await secret(), first)
    await succeed(['uninstall', 'kept', ...where])
  })

  test('a replica mirrors the cluster, and the cluster decides who reads its events', async () => {
    const etcd = [
      '--set-json',
      'etcd={"endpoints":["http://etcd:2379"],"tls":{"existingSecret":""}}',
      // The administrator of this test has a token from a file.
      '--set-json',
      'ownCluster.tokens.opaque=true',
    ]
    const values = ['-f', `${chart}/ci/own-cluster.yaml`, ...etcd, '--namespace', NAMESPACE]
    await succeed(['install', 'tidings', anyVersion, ...values, '--kubeconfig', kubeconfig])
    const manifests = await render('own-cluster', etcd)
    await using replica = await startInCluster(kube, manifests, {
      namespace: NAMESPACE,
      etcdServers: kube.etcd.endpoints.join(),
    })
    await kube.create('/api/v1/namespaces/shop/events', {
      metadata: { name: 'web-0.1' },
      involvedObject: { kind: 'Pod', namespace: 'shop', name: 'web-0' },
      reason: 'Started',
      type: 'Normal',
    })
    const path = '/api/v1/namespaces/shop/events'
    const read = (bearer: string) =>
      replica.ask(path, { headers: { authorization: `Bearer ${bearer}` } })
    await eventually(
      'the event is mirrored',
      async () => (await read(KUBE_ADMIN_TOKEN)).body.includes('web-0.1'),
      MIRRORED_MS_MAX,
    )
    // The account of the mirror may list and watch, so it may do so here; nobody else may.
    assert.equal((await read(await accountToken(kube, NAMESPACE, 'tidings'))).status, 200)
    const other = { metadata: { name: 'other' } }
    await kube.create('/api/v1/namespaces/default/serviceaccounts', other)
    assert.equal((await read(await accountToken(kube, 'default', 'other'))).status, 403)
    assert.equal((await read('unknown')).status, 401)
  })
})

async function succeed(args: readonly string[]): Promise<void> {
  const { code, stderr } = await helm(args)
  assert.equal(code, 0, stderr)
}
