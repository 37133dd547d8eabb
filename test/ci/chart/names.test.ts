/** Names and labels: texts stay texts, no two objects have one name, and no key is written twice. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { parse } from 'yaml'
import { chart, find, helm, type Manifest, manifestsIn } from '../../support/chart.ts'

/** Together they have every object of the chart. */
const SETS = ['numbers', 'own-cluster', 'production', 'trial-persistent']
/** Fields of any object that hold a name, and so a text. */
const NAMES =
  /^(name|namespace|secretName|serviceAccountName|serviceName|storageClassName|priorityClassName|image|key|path|mountPath|context|kubeconfig|commonName|serverName|replacement|interval|scrapeTimeout|duration|renewBefore|authorization|deletes|originEventTTL)$/
const MAPS = /^(labels|matchLabels|annotations|nodeSelector)$/
const LISTS = /^(args|command|dnsNames|ipAddresses|namespaces)$/

describe('release 123 in the namespace 456', () => {
  for (const set of SETS) {
    test(`value set ${set} has texts where there are names`, async () => {
      const manifests = await release({ name: '123', namespace: '456', set })
      assert.deepEqual(manifests.flatMap(wrongTypes), [])
      for (const { kind, metadata } of manifests) {
        assert.equal(typeof metadata.name, 'string')
        assert.equal(metadata.labels?.['app.kubernetes.io/instance'], '123', kind)
      }
    })
  }
})

describe('names of objects', () => {
  test('clusters of any name have roles of their own, besides those of all clusters', async () => {
    const manifests = await release({ name: 'tidings', namespace: 'events', set: 'numbers' })
    const kinds = Object.fromEntries(
      manifests
        .filter(({ data }) => data?.['a.yaml'] !== undefined)
        .map(({ metadata, data }) => [metadata.name, data['a.yaml']]),
    )
    assert.deepEqual(kinds, {
      'tidings-roles.all-clusters': 'kind: A',
      'tidings-roles-every-cluster': 'kind: B',
      'tidings-roles-all': 'kind: C',
      'tidings-roles-123': 'kind: D',
    })
  })

  test('releases whose names are alike have roles of their own in the cluster', async () => {
    const flags = ['--set', 'fullnameOverride=c']
    const one = await release({ name: 'c', namespace: 'a-b', set: 'own-cluster', flags })
    const two = await release({
      name: 'b-c',
      namespace: 'a',
      set: 'own-cluster',
      flags: ['--set', 'fullnameOverride=b-c'],
    })
    const names = [...one, ...two]
      .filter(({ kind }) => kind.startsWith('ClusterRole'))
      .map(({ kind, metadata }) => `${kind} ${metadata.name}`)
    assert.equal(names.length, 10)
    assert.deepEqual(names, [...new Set(names)])
  })

  test('a dot in the name of a release is none in that of its Service', async () => {
    const manifests = await release({ name: 'my.events', namespace: 'events', set: 'trial' })
    for (const { kind, metadata } of manifests.filter((one) => one.kind === 'Service')) {
      assert.match(metadata.name, /^my-events-tidings(-etcd)?$/, kind)
    }
  })
})

describe('labels', async () => {
  const manifests = await release({ name: 'tidings', namespace: 'events', set: 'numbers' })
  test('those of one object win over those of all', () => {
    for (const kind of ['ServiceMonitor', 'PrometheusRule']) {
      assert.equal(find(manifests, kind).metadata.labels?.['release'], '1')
    }
    assert.equal(
      find(manifests, 'ConfigMap', 'tidings-dashboard').metadata.labels?.['release'],
      '1',
    )
    const { metadata, spec } = find(manifests, 'Deployment')
    assert.equal(metadata.labels?.['release'], 'common')
    assert.equal(spec.template.metadata.labels.release, 'common')
    assert.equal(metadata.labels?.['example.com/cost'], '1000')
    assert.equal(spec.template.metadata.labels['example.com/cost'], '2000')
  })
})

describe('how pods are replaced', () => {
  const strategy = async (...flags: readonly string[]) => {
    const name = { name: 'tidings', namespace: 'events', set: 'default' }
    return find(await release({ ...name, flags }), 'Deployment')['spec'].strategy
  }
  test('Recreate has no limits', async () => {
    assert.deepEqual(await strategy('--set', 'updateStrategy.type=Recreate'), { type: 'Recreate' })
  })

  test('RollingUpdate has those of the values', async () => {
    const rollingUpdate = { maxSurge: '50%', maxUnavailable: 0 }
    assert.deepEqual(await strategy('--set', 'updateStrategy.rollingUpdate.maxSurge=50%'), {
      type: 'RollingUpdate',
      rollingUpdate,
    })
  })
})

async function release({
  name,
  namespace,
  set,
  flags = [],
}: {
  readonly name: string
  readonly namespace: string
  readonly set: string
  readonly flags?: readonly string[]
}): Promise<readonly Manifest[]> {
  const isNumber = /^\d/.test(name)
  // A Service needs a name that begins with a letter.
  const own = isNumber ? ['--set', 'fullnameOverride=events'] : []
  const args = ['template', name, chart, '--namespace', namespace, '-f', `${chart}/ci/${set}.yaml`]
  const { code, stdout, stderr } = await helm([...args, ...own, ...flags])
  assert.equal(code, 0, stderr)
  return manifestsIn(stdout)
}

/** Paths of names, labels and arguments that are no texts, also in the files of ConfigMaps. */
function wrongTypes(manifest: Manifest): readonly string[] {
  const files = manifest.kind === 'ConfigMap' ? Object.entries<string>(manifest['data']) : []
  const texts = files
    .filter(([file]) => !file.endsWith('.json'))
    .flatMap(([file, text]) => found(parse(text, { version: '1.1' }), file))
  return [...found(manifest, manifest.kind), ...texts]
}

function found(value: unknown, path: string): readonly string[] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, each]) => {
    const at = Array.isArray(value) ? `${path}[${key}]` : `${path}.${key}`
    if (MAPS.test(key) || LISTS.test(key)) return notTexts(Object.values(each ?? {}), at)
    if (NAMES.test(key) && typeof each !== 'object') return notTexts([each], at)
    return found(each, at)
  })
}

function notTexts(values: readonly unknown[], path: string): readonly string[] {
  return values.filter((value) => typeof value !== 'string').map((value) => `${path}: ${value}`)
}
