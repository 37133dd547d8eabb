/** Mistakes that many make, and what the chart says instead of a bare pattern or of nothing at all. */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { parse, stringify } from 'yaml'
import { readEventLimits } from '../../../src/registry/admission/event-limits-file.ts'
import { readPolicy } from '../../../src/retention/policy-file.ts'
import { chart, find, manifestsIn, refusal, template } from '../../support/chart.ts'

const HOUR_MS = 3_600_000

describe('durations and endpoints in other forms', { concurrency: 3 }, () => {
  const cases: readonly (readonly [values: string, error: RegExp])[] = [
    [
      'retention: {eventTTL: 7d}',
      /retention\.eventTTL=7d is not a duration: .*hours, such as 168h, or never/,
    ],
    ['retention: {eventTTL: ""}', /retention\.eventTTL= is not a duration/],
    ['retention: {eventTTL: "1h\\" x"}', /retention\.eventTTL=.* is not a duration/],
    ['retention: {eventTTL: 500ms}', /retention\.eventTTL=500ms is too short: write 1s or more/],
    [
      '{ownCluster: {mirror: {enabled: true, originEventTTL: 1d}}}',
      /ownCluster\.mirror\.originEventTTL=1d is not a duration: .*168h/,
    ],
    [
      'clusters: [{name: a, kubeconfigSecret: {name: a}, mirror: {originEventTTL: 1d}}]',
      /clusters: a: mirror\.originEventTTL=1d is not a duration/,
    ],
    ['tls: {certManager: {duration: 90d}}', /tls\.certManager\.duration=90d is not a duration/],
    ['tls: {certManager: {renewBefore: 1w}}', /tls\.certManager\.renewBefore=1w is not a/],
    [
      'etcd: {endpoints: ["etcd-0:2379"], tls: {existingSecret: x}}',
      /etcd\.endpoints: etcd-0:2379 is not a URL: write http:\/\/etcd-0:2379 or https:\/\/etcd-0:2379/,
    ],
    [
      'etcd: {endpoints: ["http://a:1,http://b:1"]}',
      /etcd\.endpoints: http:\/\/a:1,http:\/\/b:1 is not the URL of one member: write scheme, host and port/,
    ],
    ['etcd: {endpoints: ["http://a:1/v3"]}', /http:\/\/a:1\/v3 is not the URL of one member/],
  ]
  for (const [values, error] of cases) {
    test(values, async () => {
      const text = await refusal(values)
      assert.match(text, error)
      assert.equal(text.match(/^- /gm)?.length, 1, text)
    })
  }
})

describe('memory that cannot be enough', { concurrency: 3 }, () => {
  const cases: readonly (readonly [values: string, error: RegExp])[] = [
    [
      'resources: {requests: {memory: 3Gi}}',
      /resources\.limits\.memory=2Gi is less than resources\.requests\.memory=3Gi/,
    ],
    [
      'resources: {requests: {memory: 3e9}}',
      /resources\.limits\.memory=2Gi is less than resources\.requests\.memory=3e\+09/,
    ],
    ['resources: {limits: {cpu: 200m}}', /resources\.limits\.cpu=200m is less than .*cpu=250m/],
    [
      'resources: {requests: {memory: 256Mi}, limits: {memory: 512Mi}}',
      /resources\.limits\.memory=512Mi does not hold the heap that nodeOptions allows, 536 MiB/,
    ],
    [
      '{nodeOptions: --max_old_space_size=100 --max-old-space-size=4096}',
      /memory=2Gi does not hold the heap that nodeOptions allows, 4096 MiB/,
    ],
    ['resources: {limits: {memory: 2GB}}', /resources\.limits\.memory=2GB is not a quantity/],
    ['resources: {requests: {cpu: much}}', /resources\.requests\.cpu=much is not a quantity/],
    [
      'etcd: {trial: {resources: {limits: {memory: 100Mi}}}}',
      /etcd\.trial\.resources\.limits\.memory=100Mi is less than .*requests\.memory=256Mi/,
    ],
  ]
  for (const [values, error] of cases) {
    test(values, async () => assert.match(await refusal(values), error))
  }

  for (const values of [
    'resources: {requests: {cpu: 2, memory: 2Gi}, limits: {cpu: 2000m, memory: 2147483648}}',
    'resources: {requests: {memory: 1.5G}, limits: {memory: 1500M, ephemeral-storage: 1Gi}}',
    'resources: {requests: null, limits: null}',
    '{nodeOptions: "", resources: {requests: null, limits: {memory: 64Mi}}}',
  ]) {
    test(`${values} can work`, async () => {
      const { code, stderr } = await template(values)
      assert.equal(code, 0, stderr)
    })
  }
})

describe('members of policies and limits', { concurrency: 3 }, () => {
  const cases: readonly (readonly [values: string, error: RegExp])[] = [
    [
      'retention: {policy: {rules: [{typ: Warning, lifetime: 7d}]}}',
      /'\/retention\/policy\/rules\/0': additional properties 'typ' not allowed/,
    ],
    ['retention: {policy: {rules: [{type: Warning}]}}', /rules\/0': missing property 'lifetime'/],
    [
      'retention: {policy: {budgets: [{per: Namespace, event: 5}]}}',
      /'\/retention\/policy\/budgets\/0': additional properties 'event' not allowed/,
    ],
    ['retention: {policy: {budgets: [{per: namespace, events: 5}]}}', /budgets\/0\/per'/],
    [
      'retention: {policy: {history: {lifetime: 90d, keep: 5}}}',
      /'\/retention\/policy\/history': additional properties 'keep' not allowed/,
    ],
    [
      'retention: {policy: {history: {rules: [{type: Normal}]}}}',
      /history\/rules\/0': .*missing property 'lifetime'/s,
    ],
    ['retention: {policy: {history: {archive: true}}}', /history\/archive': value must be false/],
    [
      'eventRateLimits: {limits: [{type: Server, qps: 5, bursts: 5}]}',
      /'\/eventRateLimits\/limits\/0': .*'bursts' not allowed/,
    ],
    [
      'audit: {policy: {rules: [{level: Metadata, user: [a]}]}}',
      /'\/audit\/policy\/rules\/0': additional properties 'user' not allowed/,
    ],
    ['audit: {policy: {rule: []}}', /'\/audit\/policy': .*'rule' not allowed/],
    ['resources: {limit: {memory: 2Gi}}', /'\/resources': additional properties 'limit' not/],
  ]
  for (const [values, error] of cases) {
    test(values, async () => assert.match(await refusal(values), error))
  }

  test('the schema knows those that the program knows', async () => {
    const schema = JSON.parse(await readFile(join(chart, 'values.schema.json'), 'utf8'))
    const { rules, budgets, history } = schema.properties.retention.properties.policy.properties
    const { limits } = schema.properties.eventRateLimits.properties
    const members = (part: { items: { properties: object } }) =>
      Object.keys(part.items.properties).join(', ')
    const policy = { apiVersion: 'tidings.dev/v1alpha1', kind: 'RetentionPolicy' }
    for (const [name, part] of Object.entries({ rules, budgets })) {
      const text = stringify({ ...policy, [name]: [{ other: 1 }] })
      assert.throws(
        () => readPolicy(text, HOUR_MS),
        new RegExp(`known fields are ${members(part)}$`),
      )
    }
    const inHistory = (fields: object): string => stringify({ ...policy, history: fields })
    assert.throws(
      () => readPolicy(inHistory({ other: 1 }), HOUR_MS),
      new RegExp(`known fields are ${Object.keys(history.properties).join(', ')}$`),
    )
    assert.throws(
      () => readPolicy(inHistory({ rules: [{ other: 1 }] }), HOUR_MS),
      new RegExp(`known fields are ${members(history.properties.rules)}$`),
    )
    const kind = {
      apiVersion: 'eventratelimit.admission.k8s.io/v1alpha1',
      kind: 'Configuration',
    }
    const text = stringify({ ...kind, limits: [{ other: 1 }] })
    assert.throws(() => readEventLimits(text), new RegExp(`known fields are ${members(limits)}$`))
  })

  test('all of them can be set', async () => {
    const one = { cluster: 'a', namespace: ['b'] }
    const rule = { ...one, name: 'r', type: 'Warning', reason: 'x', kind: ['Pod'], controller: 'k' }
    const policy = {
      rules: [{ ...rule, lifetime: '2w' }],
      budgets: [{ ...one, name: 'n', per: 'Namespace', events: 1000, bytes: '2Gi' }],
      history: { lifetime: '90d', rules: [{ ...rule, archive: false }] },
    }
    const { stdout, stderr } = await template(JSON.stringify({ retention: { policy } }))
    assert.equal(stderr, '')
    const file = find(manifestsIn(stdout), 'ConfigMap')['data']['retention.yaml']
    assert.deepEqual(parse(file).rules, policy.rules)
    const read = readPolicy(file, HOUR_MS)
    assert.deepEqual([read.rules.length, read.history.rules.length], [2, 2])
  })
})
