/** Values that cannot work are refused when the chart is rendered, with what to do instead. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { hash } from 'node:crypto'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { packChart } from '../../../tools/chart-package.ts'
import { chart, helm, refusal, template } from '../../support/chart.ts'

/** Renderings at a time. */
const CONCURRENCY = 3

describe('values that the schema refuses', { concurrency: CONCURRENCY }, () => {
  const cases: readonly (readonly [values: string, error: RegExp])[] = [
    ['replicaCount: 3', /additional properties 'replicaCount' not allowed/],
    ['tls: {typ: selfSigned}', /'\/tls': additional properties 'typ' not allowed/],
    ['tls: {type: self-signed}', /'\/tls\/type': value must be one of/],
    ['replicas: 0', /'\/replicas': minimum/],
    ['replicas: "3"', /'\/replicas': got string, want integer/],
    ['etcd: {endpoints: "http://etcd:2379"}', /'\/etcd\/endpoints': got string, want array/],
    ['etcd: {prefix: /tidings/}', /'\/etcd\/prefix'/],
    ['extraArgs: [--max-watches, "5"]', /'\/extraArgs\/1'/],
    ['shutdownDelaySeconds: 15s', /'\/shutdownDelaySeconds': got string, want integer/],
    ['clusters: [{kubeconfigSecret: {name: x}}]', /'\/clusters\/0': missing property 'name'/],
    ['clusters: [{name: Prod}]', /'\/clusters\/0\/name'/],
    ['clusters: [{name: a, mirror: {namespace: x}}]', /'namespace' not allowed/],
    ['roles: {files: {people.txt: ""}}', /invalid propertyName 'people.txt'/],
    ['roles: {clusters: {prod_eu: {existingConfigMap: x}}}', /invalid propertyName 'prod_eu'/],
    ['image: {digest: abc}', /'\/image\/digest'/],
    ['etcd: {trial: {image: "x\\ny: z"}}', /'\/etcd\/trial\/image'/],
    ['etcd: {trial: {image: "x: y"}}', /'\/etcd\/trial\/image'/],
    ['retention: {policy: {rule: []}}', /additional properties 'rule' not allowed/],
    ['audit: {policy: {kind: Policy, rules: []}}', /'\/audit\/policy'/],
    ['podDisruptionBudget: {minAvailable: most}', /'\/podDisruptionBudget\/minAvailable'/],
    ['monitoring: {runbookBaseUrl: wiki}', /'\/monitoring\/runbookBaseUrl'/],
    ['tracing: {endpoint: collector}', /'\/tracing\/endpoint'/],
    ['history: {url: "s3://a b"}', /'\/history\/url'/],
    ['history: {s3: {endpoint: "minio:9000"}}', /'\/history\/s3\/endpoint'/],
    ['history: {cacheSize: 10}', /'\/history\/cacheSize'/],
    ['containerPort: 443', /'\/containerPort': minimum/],
    ['tracing: null', /'': missing property 'tracing'/],
    ['ui: false', /'\/ui'/],
    ['ui: {enabled: "false"}', /'\/ui\/enabled'/],
    ['tls: {extraDNSNames: null}', /'\/tls': missing property 'extraDNSNames'/],
    ['fullnameOverride: my.events', /'\/fullnameOverride'/],
    ['nameOverride: my.events', /'\/nameOverride'/],
    [
      'updateStrategy: {rollingUpdate: {maxSurge: "1"}}',
      /'\/updateStrategy\/rollingUpdate\/maxSurge'/,
    ],
    ['podDisruptionBudget: {maxUnavailable: 101%}', /'\/podDisruptionBudget\/maxUnavailable'/],
    ['commonLabels: {team: "a b"}', /'\/commonLabels\/team'/],
    ['podLabels: {"a b": x}', /invalid propertyName 'a b'/],
    ['podAnnotations: {"a b": x}', /invalid propertyName 'a b'/],
    ['monitoring: {serviceMonitor: {interval: 0s}}', /'\/monitoring\/serviceMonitor\/interval'/],
    ['service: {type: LoadBalancer, loadBalancerSourceRanges: [all]}', /Ranges\/0'/],
  ]
  for (const [values, error] of cases) {
    test(values, async () => assert.match(await refusal(values), error))
  }
})

describe('combinations that cannot work', { concurrency: CONCURRENCY }, () => {
  const trial = 'etcd: {endpoints: [], trial: {enabled: true, image: "etcd:3.5.30"}}'
  const cases: readonly (readonly [values: string, error: RegExp])[] = [
    ['etcd: {endpoints: []}', /etcd\.endpoints is empty: set it .*etcd\.trial\.enabled=true/],
    [
      'etcd: {trial: {enabled: true, image: x}}',
      /etcd\.endpoints and etcd\.trial\.enabled are both/,
    ],
    ['etcd: {endpoints: [], trial: {enabled: true}}', /etcd\.trial\.image is missing/],
    ['etcd: {endpoints: ["https://etcd:2379"]}', /etcd\.tls\.existingSecret is missing/],
    ['etcd: {endpoints: ["https://a:1", "http://b:1"]}', /has http and https/],
    ['etcd: {tls: {existingSecret: x}}', /but etcd\.endpoints are http: use https/],
    ['etcd: {tls: {keyFile: ""}}', /etcd\.tls\.keyFile is empty/],
    ['tls: {type: existingSecret}', /tls\.existingSecret is missing/],
    ['tls: {existingSecret: x}', /tls\.type is selfSigned: set tls\.type=existingSecret/],
    ['tls: {type: certManager}', /issuerRef\.name is missing/],
    [
      'monitoring: {serviceMonitor: {enabled: true}}',
      /serviceMonitor\.tokenSecret\.name is missing/,
    ],
    [
      '{openPaths: [/livez, /readyz, /metrics], monitoring: {serviceMonitor: {enabled: true}}}',
      /or \/metrics\* in openPaths/,
    ],
    ['monitoring: {serviceMonitor: {scrapeTimeout: 31s}}', /scrapeTimeout=31s .*interval=30s/],
    [
      'monitoring: {serviceMonitor: {interval: 1m, scrapeTimeout: 60001ms}}',
      /scrapeTimeout=60001ms .*interval=1m/,
    ],
    [
      'tls: {certManager: {duration: 24h, renewBefore: 1440m}}',
      /renewBefore=1440m must be less than tls\.certManager\.duration=24h/,
    ],
    [
      'updateStrategy: {rollingUpdate: {maxSurge: 0}}',
      /maxSurge and maxUnavailable are both 0: no pod could ever be replaced/,
    ],
    ['updateStrategy: {rollingUpdate: {maxSurge: 0%, maxUnavailable: 0%}}', /are both 0/],
    [
      'etcd: {endpoints: [], trial: {enabled: true, image: x, persistence: {enabled: true, size: 5Gi}}}',
      /persistence\.size=5Gi .* three times etcd\.trial\.quota=2Gi/,
    ],
    [
      'podDisruptionBudget: {minAvailable: 80%, maxUnavailable: ""}',
      /minAvailable=80% with replicas=3/,
    ],
    ['podDisruptionBudget: {maxUnavailable: null}', /neither minAvailable nor maxUnavailable/],
    ['podDisruptionBudget: {maxUnavailable: 0%}', /maxUnavailable=0%: no node/],
    [
      'podLabels: {app.kubernetes.io/instance: other}',
      /podLabels: the chart sets the label app\.kubernetes\.io\/instance itself/,
    ],
    ['commonLabels: {helm.sh/chart: other}', /commonLabels: the chart sets the label helm\.sh/],
    [
      'monitoring: {dashboard: {labels: {app.kubernetes.io/name: other}}}',
      /monitoring\.dashboard\.labels: the chart sets the label app\.kubernetes\.io\/name itself/,
    ],
    [
      '{podAnnotations: {tidings.dev/tracing: x}, tracing: {endpoint: "a:1"}}',
      /podAnnotations: the chart sets tidings\.dev\/tracing itself/,
    ],
    ['fullnameOverride: 1events', /1events .*must begin with a letter: set fullnameOverride/],
    ['extraEnv: [{name: NODE_OPTIONS, value: x}]', /extraEnv: NODE_OPTIONS is there twice/],
    ['extraVolumes: [{name: tls, emptyDir: {}}]', /extraVolumes: tls is there twice/],
    [
      'extraVolumeMounts: [{name: x, mountPath: /etc/tidings/tls/}]',
      /extraVolumeMounts: \/etc\/tidings\/tls is there twice/,
    ],
    ['extraVolumeMounts: [{name: x, mountPath: /etc/x}]', /no volume x: add it to extraVolumes/],
    [
      'topologySpreadConstraints: [{topologyKey: a, maxSkew: 1, whenUnsatisfiable: DoNotSchedule}, {topologyKey: a, maxSkew: 2, whenUnsatisfiable: DoNotSchedule}]',
      /topologySpreadConstraints: a with DoNotSchedule is there twice/,
    ],
    [
      '{ownCluster: {mirror: {enabled: true}}, serviceAccount: {create: false}}',
      /serviceAccount\.create is false, so ownCluster needs serviceAccount\.name/,
    ],
    [
      '{ownCluster: {authorization: origin}, serviceAccount: {create: false}}',
      /serviceAccount\.create is false, so ownCluster needs serviceAccount\.name/,
    ],
    ['extraArgs: [--trust_loopback=true]', /the chart sets --trust-loopback itself/],
    [
      'podDisruptionBudget: {minAvailable: 3, maxUnavailable: ""}',
      /minAvailable=3 with replicas=3/,
    ],
    ['podDisruptionBudget: {minAvailable: 100%, maxUnavailable: ""}', /minAvailable=100% with/],
    ['podDisruptionBudget: {minAvailable: 4, maxUnavailable: ""}', /must be less than replicas/],
    ['podDisruptionBudget: {minAvailable: 1}', /has minAvailable and maxUnavailable/],
    ['podDisruptionBudget: {maxUnavailable: ""}', /neither minAvailable nor maxUnavailable/],
    ['podDisruptionBudget: {maxUnavailable: 0}', /maxUnavailable=0: no node/],
    ['service: {nodePort: 30001}', /service\.nodePort is set, but service\.type is ClusterIP/],
    ['service: {loadBalancerSourceRanges: [10.0.0.0/8]}', /service\.type is not LoadBalancer/],
    ['openPaths: [/livez]', /openPaths must have \/readyz: the kubelet has no credentials/],
    ['extraArgs: [--no-such-flag=1]', /tidings \S+ has no flag --no-such-flag/],
    ['extraArgs: [--request-timeout=5m]', /the chart sets --request-timeout itself/],
    ['extraArgs: [--event_ttl=5m]', /the chart sets --event-ttl itself/],
    ['extraArgs: [--ui=false]', /the chart sets --ui itself/],
    ['extraArgs: ["--history=s3://bucket"]', /the chart sets --history itself/],
    [
      'history: {url: gs://bucket}',
      /history\.url=gs:\/\/bucket is not known: write s3:\/\/my-bucket/,
    ],
    ['history: {url: "https://a:secret@b/c"}', /history\.url=https:\/\/…@b\/c is not known/],
    ['history: {url: s3://Bucket}', /history\.url=s3:\/\/Bucket is not a bucket: write such as/],
    ['history: {url: file:///var/history}', /history\.volume\.existingClaim is missing/],
    [
      'history: {url: file:///a/../b, volume: {existingClaim: x}}',
      /history\.url=file:\/\/\/a\/\.\.\/b is not a directory/,
    ],
    [
      'history: {s3: {existingSecret: x}}',
      /history\.s3\.existingSecret is set, but history\.url is empty: it has no effect/,
    ],
    [
      'history: {url: s3://bucket, volume: {existingClaim: x}}',
      /history\.volume\.existingClaim is set, but history\.url is s3:\/\/bucket/,
    ],
    ['history: {cacheSize: 100Mi}', /history\.cacheSize=100Mi is too small: write 256Mi or more/],
    ['history: {readerMemory: 64Mi}', /history\.readerMemory=64Mi is too small: write 128Mi or/],
    [
      '{history: {url: s3://bucket, s3: {region: a}}, extraEnv: [{name: AWS_REGION, value: b}]}',
      /extraEnv: AWS_REGION is there twice: use history\.s3/,
    ],
    ['clusters: [{name: a}, {name: a}]', /clusters: a is there twice/],
    ['clusters: [{name: a, mirror: {}}]', /a needs kubeconfigSecret/],
    ['clusters: [{name: a, authorization: origin}]', /a needs kubeconfigSecret/],
    [
      'clusters: [{name: a, kubeconfigSecret: {name: a}, mirror: {deletes: explicit}}]',
      /a needs mirror\.originEventTTL/,
    ],
    [
      '{ownCluster: {mirror: {enabled: true}}, clusters: [{name: local}]}',
      /local is there twice: it is the clusterName/,
    ],
    ['ownCluster: {mirror: {deletes: explicit}}', /ownCluster\.mirror\.originEventTTL is missing/],
    [
      '{ownCluster: {mirror: {enabled: true}}, rbac: {create: false}}',
      /ownCluster needs serviceAccount\.name/,
    ],
    [
      'roles: {existingConfigMap: x, files: {a.yaml: "a: 1"}}',
      /roles\.existingConfigMap and roles\.files are both set/,
    ],
    ['roles: {clusters: {a: {}}}', /roles\.clusters\.a needs one of existingConfigMap and files/],
    [
      'retention: {existingConfigMap: x, policy: {rules: [{lifetime: 1h}]}}',
      /retention\.policy and retention\.existingConfigMap are both set/,
    ],
    [
      'audit: {existingConfigMap: x, policy: {rules: [{level: None}]}}',
      /audit\.policy and audit\.existingConfigMap are both set/,
    ],
  ]
  for (const [values, error] of cases) {
    test(values, async () => {
      const text = await refusal(values)
      assert.match(text, /These values cannot work:/)
      assert.match(text, error)
    })
  }

  test('all mistakes are reported at once', async () => {
    const text = await refusal('{etcd: {endpoints: []}, tls: {type: certManager}, openPaths: []}')
    assert.equal(text.match(/^- /gm)?.length, 4, text)
  })

  test('flags of another version of the program are not checked', async () => {
    const other = '{extraArgs: [--flag-of-tomorrow], image: {tag: 9.9.9}}'
    assert.equal((await template(other)).code, 0)
    assert.equal((await template(trial)).code, 0)
  })

  for (const values of [
    '{openPaths: ["/livez*", "/readyz", "/metrics*"], monitoring: {serviceMonitor: {enabled: true}}}',
    '{openPaths: ["/*"], monitoring: {serviceMonitor: {enabled: true}}}',
    'podDisruptionBudget: {minAvailable: 66%, maxUnavailable: null}',
    'podDisruptionBudget: {minAvailable: 0, maxUnavailable: null}',
    'podDisruptionBudget: {maxUnavailable: 1%}',
    'updateStrategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: null}}',
    '{updateStrategy: {rollingUpdate: null}, monitoring: {serviceMonitor: {scrapeTimeout: 30s}}}',
    'etcd: {endpoints: [], trial: {enabled: true, image: x, persistence: {enabled: true, size: 1Ti}}}',
    '{extraVolumes: [{name: x, emptyDir: {}}], extraVolumeMounts: [{name: x, mountPath: /x}, {name: x, mountPath: /y}]}',
  ]) {
    test(`${values} can work`, async () => {
      const { code, stderr } = await template(values)
      assert.equal(code, 0, stderr)
    })
  }
})

test('helm lint --strict finds nothing', async () => {
  const { code, stdout } = await helm(['lint', '--strict', chart])
  assert.equal(code, 0, stdout)
  assert.doesNotMatch(stdout, /WARNING|ERROR/)
})

test('the packed chart has the same bytes each time, renders, and leaves out what is for tests', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'tidings-packed-'))
  try {
    const { version } = JSON.parse(await readFile(join(chart, '../../package.json'), 'utf8'))
    const hashes: string[] = []
    for (const name of ['first', 'second']) {
      packChart(join(folder, name))
      const packed = join(folder, name, `tidings-${version}.tgz`)
      hashes.push(hash('sha256', await readFile(packed)))
      const values = ['-f', `${chart}/ci/production.yaml`]
      assert.equal((await helm(['template', 'tidings', packed, ...values])).code, 0)
    }
    assert.equal(hashes[0], hashes[1])
    const list = execFileSync('tar', ['-tzf', join(folder, 'first', `tidings-${version}.tgz`)])
    assert.match(String(list), /^tidings\/files\/dashboard\.json$/m)
    assert.doesNotMatch(String(list), /\/ci\//)
  } finally {
    await rm(folder, { recursive: true })
  }
})
