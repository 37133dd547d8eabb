/** What the chart renders from each value set of its folder ci. */
import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { parse, stringify } from 'yaml'
import { serverCommand } from '../../../src/options/commands.ts'
import { flagsByTopic } from '../../../src/options/help.ts'
import { bytesOfHistory } from '../../../src/server/memory-budget.ts'
import {
  chart,
  find,
  type Manifest,
  manifestsIn,
  NAMESPACE,
  render,
  valueSets,
} from '../../support/chart.ts'
import { isKnownKind, structureProblems } from '../../support/kubernetes-structure.ts'
import { promtool } from '../../support/prometheus.ts'

const FLAGS = new Set([...flagsByTopic(serverCommand).values()].flat().map(({ name }) => name))
// biome-ignore lint/suspicious/noExplicitAny: parts of manifests, as a test reads them.
type Fields = any

const CUSTOM_KINDS = ['Certificate', 'ServiceMonitor', 'PrometheusRule']
const CLUSTER_WIDE = ['ClusterRole', 'ClusterRoleBinding']
/** Objects that the value sets only name: they exist in the cluster already. */
const GIVEN = [
  'tidings-etcd',
  'tidings-serving',
  'tidings-tokens',
  'tidings-roles',
  'tidings-retention',
  'tidings-audit',
  'tidings-prometheus',
  'client-ca',
  'company-ca',
  'fleet-roles',
  'prod-eu',
  'staging',
  'kube-root-ca.crt',
  // These are of the value set `numbers`.
  '77',
  '1e3',
  '0x1f',
  '2026-01-01',
  'true',
  '123',
  '5',
  '6',
]

test('there are at least a dozen value sets', () => {
  assert.ok(valueSets.length >= 12, String(valueSets))
})

for (const set of valueSets) {
  describe(`value set ${set}`, async () => {
    const manifests = await render(set)
    const workloads = manifests.filter(({ kind }) => /^(Deployment|StatefulSet)$/.test(kind))
    const deployment = find(manifests, 'Deployment')
    const container = deployment['spec'].template.spec.containers[0]

    test('has the structure of Kubernetes 1.36', () => {
      assert.deepEqual(manifests.filter(isKnownKind).flatMap(structureProblems), [])
      const others = manifests.filter((one) => !isKnownKind(one)).map(({ kind }) => kind)
      assert.deepEqual(
        others.filter((kind) => !CUSTOM_KINDS.includes(kind)),
        [],
      )
    })

    test('every object is named once, and is in the namespace of the release', () => {
      const names = manifests.map(({ kind, metadata: { name, namespace } }) => {
        return `${kind} ${namespace}/${name}`
      })
      assert.deepEqual(names, [...new Set(names)])
      for (const { kind, metadata } of manifests) {
        assert.ok(metadata.name.length <= 63, metadata.name)
        if (kind === 'RoleBinding') continue
        const expected = CLUSTER_WIDE.includes(kind) ? undefined : NAMESPACE
        assert.equal(metadata.namespace, expected, `${kind} ${metadata.name}`)
      }
    })

    test('selectors find the pods, and only those of one workload', () => {
      const selectors = manifests.flatMap(selectorsOf)
      assert.ok(selectors.length >= 2)
      for (const { owner, labels } of selectors) {
        const found = workloads.filter(({ spec }) =>
          isSelected(labels, spec.template.metadata.labels),
        )
        assert.equal(found.length, 1, `${owner} selects ${found.length} workloads`)
      }
    })

    test('ports are known by the names that Services, probes and policies use', () => {
      for (const { spec } of workloads) {
        for (const each of spec.template.spec.containers) {
          const names = each.ports.map((port: { name: string }) => port.name)
          for (const probe of ['startupProbe', 'livenessProbe', 'readinessProbe']) {
            assert.ok(names.includes(each[probe].httpGet.port), probe)
          }
        }
      }
      const https = container.ports.find((port: { name: string }) => port.name === 'https')
      assert.ok(container.args.includes(`--secure-port=${https.containerPort}`))
      assert.equal(
        find(manifests, 'Service', deployment.metadata.name)['spec'].ports[0].targetPort,
        'https',
      )
    })

    test('volumes exist, are used once and come from objects that exist', () => {
      for (const { spec, metadata } of workloads) {
        const pod = spec.template.spec
        const claims = (spec.volumeClaimTemplates ?? []).map(
          (claim: Manifest) => claim.metadata.name,
        )
        const volumes = [
          ...(pod.volumes ?? []).map((each: { name: string }) => each.name),
          ...claims,
        ]
        const mounts = pod.containers.flatMap(
          (each: { volumeMounts: readonly object[] }) => each.volumeMounts,
        )
        const used = mounts.map((mount: { name: string }) => mount.name)
        assert.deepEqual([...used].sort(), [...volumes].sort(), metadata.name)
        for (const mount of mounts) assert.equal(mount.subPath, undefined, 'is never updated')
        for (const name of sourcesOf(pod.volumes ?? [])) {
          const isMade = manifests.some(({ metadata: made, kind }) => {
            return made.name === name && /^(ConfigMap|Secret)$/.test(kind)
          })
          const isIssued = manifests.some(
            (one) => one.kind === 'Certificate' && one['spec'].secretName === name,
          )
          assert.ok(isMade || isIssued || GIVEN.includes(name), `no ConfigMap or Secret ${name}`)
        }
      }
    })

    test('flags exist, and their files are in a mounted folder', () => {
      const folders = container.volumeMounts.map((mount: { mountPath: string }) => mount.mountPath)
      for (const arg of container.args as readonly string[]) {
        const [, name = '', value = ''] = /^--?([^=]+)=?(.*)$/.exec(arg) ?? []
        assert.ok(FLAGS.has(name), arg)
        if (!value.startsWith('/etc/')) continue
        const isMounted = folders.some((folder: string) => `${value}/`.startsWith(`${folder}/`))
        const isAbove = folders.some((folder: string) => folder.startsWith(`${value}/`))
        assert.ok(isMounted || isAbove, arg)
      }
      assert.equal(container.command, undefined, 'the entry point of the image is the program')
    })

    test('pods are locked down, and have time to stop', () => {
      for (const { spec } of workloads) {
        const pod = spec.template.spec
        assert.equal(pod.automountServiceAccountToken, false)
        assert.equal(pod.securityContext.runAsNonRoot, true)
        assert.equal(pod.securityContext.runAsUser, 65532)
        assert.deepEqual(pod.securityContext.seccompProfile, { type: 'RuntimeDefault' })
        for (const { securityContext, resources } of pod.containers) {
          assert.equal(securityContext.readOnlyRootFilesystem, true)
          assert.equal(securityContext.allowPrivilegeEscalation, false)
          assert.deepEqual(securityContext.capabilities, { drop: ['ALL'] })
          assert.match(resources.limits.memory, /[GM]i$/)
        }
      }
      const seconds = (flag: string) => Number(argOf(container.args, flag).replace(/s$/, ''))
      const grace = deployment['spec'].template.spec.terminationGracePeriodSeconds
      assert.equal(grace, seconds('shutdown-delay-duration') + seconds('request-timeout') + 10)
    })

    test('bindings name roles and accounts that exist', () => {
      for (const binding of manifests.filter(({ kind }) => kind.endsWith('RoleBinding'))) {
        const { roleRef, subjects } = binding as unknown as {
          roleRef: { kind: string; name: string }
          subjects: readonly { name: string }[]
        }
        if (!roleRef.name.startsWith('system:')) find(manifests, roleRef.kind, roleRef.name)
        const account = deployment['spec'].template.spec.serviceAccountName
        assert.deepEqual(
          subjects.map(({ name }) => name),
          [account],
        )
      }
    })

    test('texts in ConfigMaps are valid YAML or JSON', () => {
      for (const { data } of manifests.filter(({ kind }) => kind === 'ConfigMap')) {
        for (const text of Object.values<string>(data)) assert.equal(typeof parse(text), 'object')
      }
    })
  })
}

describe('particular objects', () => {
  test('alerts get the job of the values and links to read', async () => {
    const rules = (manifest: Manifest) =>
      manifest['spec'].groups.flatMap((group: Fields) => group.rules)
    const shipped = find(await render('production'), 'PrometheusRule')
    await promtool(['check', 'rules'], stringify({ groups: shipped['spec'].groups }))
    const alerts = rules(shipped).filter(({ alert }: Fields) => alert !== undefined)
    assert.ok(alerts.length > 10)
    for (const { alert, annotations } of alerts) {
      const link = `https://wiki.example.com/tidings/docs/runbook/alerts.md#${alert.toLowerCase()}`
      assert.equal(annotations.runbook_url, link)
    }
    const flags = ['--set', 'monitoring.prometheusRule.enabled=true']
    const other = rules(find(await render('scheduling', flags), 'PrometheusRule'))
    const text = JSON.stringify(other.map((rule: Fields) => rule.expr))
    assert.match(text, /job=\\"audit-events\\"/)
    assert.doesNotMatch(text, /job=\\"tidings\\"/)
  })

  test('the two paths that are scraped have jobs of their own, the first that of the rules', async () => {
    const { endpoints } = find(await render('production'), 'ServiceMonitor')['spec']
    const jobs = endpoints.map(({ path, relabelings }: Fields) => [
      path,
      relabelings[0].replacement,
    ])
    assert.deepEqual(jobs, [
      ['/metrics', 'tidings'],
      ['/metrics/slis', 'tidings-slis'],
    ])
  })

  test('the certificate of a trial has the names of the Service and is signed by its ca.crt', async () => {
    const { data } = find(await render('exposed'), 'Secret')
    const certificate = new X509Certificate(Buffer.from(data['tls.crt'], 'base64'))
    for (const name of [
      'tidings.events.svc',
      'tidings.events.svc.cluster.local',
      'localhost',
      'events.example.com',
    ]) {
      assert.equal(certificate.checkHost(name), name)
    }
    assert.equal(certificate.checkIP('203.0.113.9'), '203.0.113.9')
    const authority = new X509Certificate(Buffer.from(data['ca.crt'], 'base64'))
    assert.ok(certificate.verify(authority.publicKey))
  })

  test('history has its place, a cache of its own and memory beside that of the server', async () => {
    const pod = async (set: string): Promise<Fields> =>
      find(await render(set), 'Deployment')['spec'].template.spec
    const bucket = await pod('history-bucket')
    const [container] = bucket.containers
    assert.equal(argOf(container.args, 'history'), 's3://example-events/tidings')
    assert.equal(argOf(container.args, 'history-cache-bytes'), String(20 * 1024 ** 3))
    assert.equal(argOf(container.args, 'history-reader-memory'), String(1024 ** 3))
    const cache = bucket.volumes.find(({ name }: Fields) => name === 'history-cache')
    assert.deepEqual(cache.emptyDir, { sizeLimit: '25600Mi' })
    const mount = container.volumeMounts.find(({ name }: Fields) => name === 'history-cache')
    assert.equal(mount.mountPath, argOf(container.args, 'history-cache-dir'))
    const taken = bytesOfHistory({ history: 's3://a', historyReaderMemoryBytes: 1024 ** 3 })
    const sum = (ownMib: number): string => `${ownMib + taken / 1024 ** 2}Mi`
    assert.equal(container.resources.limits.memory, sum(2048))
    assert.equal(container.resources.requests.memory, sum(1024))
    assert.deepEqual(container.env.slice(1), [{ name: 'AWS_REGION', value: 'eu-central-1' }])
    const account = find(await render('history-bucket'), 'ServiceAccount')
    assert.ok(account.metadata.annotations?.['eks.amazonaws.com/role-arn'])

    const keys = (await pod('history-keys')).containers[0].env
    const key = (name: string) => ({ secretKeyRef: { name: 'tidings-bucket', key: name } })
    assert.deepEqual(keys, [
      { name: 'AWS_REGION', value: 'us-east-1' },
      { name: 'AWS_ENDPOINT_URL_S3', value: 'https://minio.storage.svc:9000' },
      { name: 'AWS_ACCESS_KEY_ID', valueFrom: key('AWS_ACCESS_KEY_ID') },
      { name: 'AWS_SECRET_ACCESS_KEY', valueFrom: key('AWS_SECRET_ACCESS_KEY') },
    ])

    const { volumes, containers } = await pod('history-volume')
    const volume = volumes.find(({ name }: Fields) => name === 'history')
    assert.deepEqual(volume.persistentVolumeClaim, { claimName: 'tidings-history' })
    const place = containers[0].volumeMounts.find(({ name }: Fields) => name === 'history')
    assert.equal(`file://${place.mountPath}`, argOf(containers[0].args, 'history'))
    assert.equal(place.readOnly, undefined)
  })

  test('only replicas reach the etcd of a trial, and only at its client port', async () => {
    for (const set of ['trial', 'trial-persistent']) {
      const manifests = await render(set)
      const etcd = manifests.find(({ kind }) => kind === 'StatefulSet')?.['spec'].template
      const replica = find(manifests, 'Deployment')['spec'].template.metadata.labels
      const policies = manifests.filter(
        ({ kind, spec }) =>
          kind === 'NetworkPolicy' && isSubset(spec.podSelector.matchLabels, etcd.metadata.labels),
      )
      assert.equal(policies.length, 1, set)
      const { policyTypes, ingress } = policies[0]?.['spec'] ?? assert.fail()
      assert.deepEqual(policyTypes, ['Ingress'])
      assert.equal(ingress.length, 1)
      assert.deepEqual(ingress[0].ports, [{ port: 'client', protocol: 'TCP' }])
      assert.equal(ingress[0].from.length, 1)
      const { podSelector, ...others } = ingress[0].from[0]
      assert.deepEqual(others, {})
      assert.ok(isSubset(podSelector.matchLabels, replica))
      assert.ok(!isSubset(podSelector.matchLabels, etcd.metadata.labels))
      // Peers do not need a port: there is one member.
      const { command, ports } = etcd.spec.containers[0]
      assert.ok(command.includes('--listen-peer-urls=http://127.0.0.1:2380'))
      assert.deepEqual(ports[0], { name: 'client', containerPort: 2379 })
    }
  })

  test('the rights of the mirror are those of deploy/origin-mirror.yaml', async () => {
    const text = await readFile(join(chart, '../../deploy/origin-mirror.yaml'), 'utf8')
    const given = find(manifestsIn(text), 'ClusterRole')['rules']
    assert.deepEqual(rightsIn(await render('own-cluster')), given)
    const [events, kubeSystem] = given
    const withOwners = text.replace(/^( {2})# (- apiGroups| {2}(?:resources|verbs))/gm, '$1$2')
    assert.deepEqual(
      rightsIn(await render('owners')).filter((rule) => rule.resourceNames === undefined),
      find(manifestsIn(withOwners), 'ClusterRole')['rules'].filter(
        (rule: Fields) => rule['resourceNames'] === undefined,
      ),
    )
    const limited = await render('own-namespaces')
    assert.deepEqual(rightsIn(limited), [kubeSystem], 'a RoleBinding elsewhere would not grant it')
    const bindings = limited.filter(({ kind }) => kind === 'RoleBinding')
    assert.deepEqual(bindings.map(({ metadata }) => metadata.namespace).sort(), ['billing', 'shop'])
    for (const { roleRef } of bindings as Fields[]) {
      const role = limited.find(
        ({ kind, metadata }) => `${kind} ${metadata.name}` === `${roleRef.kind} ${roleRef.name}`,
      )
      assert.deepEqual(role?.['rules'], [events])
    }
    const config = find(limited, 'ConfigMap')['data']['clusters.yaml']
    assert.equal(parse(config).clusters[0].mirror.identity, 'shops')
  })
})

/** The rules that count in the whole cluster. */
function rightsIn(manifests: readonly Manifest[]): readonly Fields[] {
  const bound = manifests.filter(({ kind }) => kind === 'ClusterRoleBinding')
  const names = bound.map(({ roleRef }: Fields) => roleRef.name)
  return manifests
    .filter(({ kind, metadata }) => kind === 'ClusterRole' && names.includes(metadata.name))
    .flatMap((role) => role['rules'])
}

function selectorsOf(
  manifest: Manifest,
): readonly { owner: string; labels: Record<string, string> }[] {
  const { kind, metadata, spec } = manifest
  const owner = `${kind} ${metadata.name}`
  const found = [
    spec?.selector?.matchLabels,
    kind === 'Service' ? spec.selector : undefined,
    spec?.podSelector?.matchLabels,
    ...(spec?.template?.spec?.topologySpreadConstraints ?? []).map(
      (each: Fields) => each.labelSelector.matchLabels,
    ),
  ]
  return found.filter((labels) => labels !== undefined).map((labels) => ({ owner, labels }))
}

function isSelected(selector: Record<string, string>, labels: Record<string, string>): boolean {
  return Object.entries(selector).every(([name, value]) => labels[name] === value)
}

/** Names of the ConfigMaps and Secrets of volumes. */
function sourcesOf(volumes: readonly Fields[]): readonly string[] {
  return volumes
    .flatMap((volume) => [volume, ...(volume.projected?.sources ?? [])])
    .flatMap(({ secret, configMap }) => [secret?.secretName ?? secret?.name, configMap?.name])
    .filter((name) => name !== undefined)
}

function argOf(args: readonly string[], flag: string): string {
  const start = `--${flag}=`
  return args.find((arg) => arg.startsWith(start))?.slice(start.length) ?? ''
}

function isSubset(
  wanted: Readonly<Record<string, string>>,
  labels: Readonly<Record<string, string>>,
): boolean {
  return Object.entries(wanted).every(([name, value]) => labels[name] === value)
}
