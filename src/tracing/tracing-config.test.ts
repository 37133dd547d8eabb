import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { readTracingConfig } from './tracing-config.ts'

const HEAD = 'apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\n'

describe('readTracingConfig', () => {
  test('uses the defaults of Kubernetes in each of its versions', () => {
    for (const version of ['v1', 'v1beta1', 'v1alpha1']) {
      const text = HEAD.replace('/v1', `/${version}`)
      const found = readTracingConfig(text)
      assert.deepEqual(found, { endpoint: 'localhost:4317', samplingRatePerMillion: 0 }, version)
    }
  })

  test('reads endpoints as gRPC names', () => {
    for (const [sent, endpoint] of [
      ['127.0.0.1:4317', '127.0.0.1:4317'],
      ['"[::1]:4317"', '[::1]:4317'],
      ['otel-collector.monitoring.svc:4317', 'otel-collector.monitoring.svc:4317'],
      ['dns://collector:4317', 'collector:4317'],
      ['dns:///collector:4317', 'collector:4317'],
      ['unix:///run/otel/collector.sock', 'unix:///run/otel/collector.sock'],
    ]) {
      assert.equal(readTracingConfig(`${HEAD}endpoint: ${sent}`).endpoint, endpoint, sent)
    }
  })

  test('accepts rates from 0 to a million', () => {
    for (const rate of [0, 1, 10_000, 1_000_000]) {
      const { samplingRatePerMillion } = readTracingConfig(`${HEAD}samplingRatePerMillion: ${rate}`)
      assert.equal(samplingRatePerMillion, rate)
    }
  })

  test('throws an error that names the wrong field and says what to write', () => {
    for (const [text, error] of [
      ['', /the file is empty/],
      [
        'apiVersion: apps/v1\nkind: DaemonSet',
        /set apiVersion: apiserver\.config\.k8s\.io\/v1 and/,
      ],
      [
        `${HEAD}foo: bar`,
        /foo: unknown field; known fields are .*endpoint, samplingRatePerMillion/,
      ],
      [`${HEAD}endpoint: a:1\nendpoint: b:2`, /line 4: not YAML \(duplicate key\)/],
      [`${HEAD}samplingRatePerMillion: -1`, /: samplingRatePerMillion: -1 is not a whole number/],
      [`${HEAD}samplingRatePerMillion: 1000001`, /: samplingRatePerMillion: 1000001 is not/],
      [`${HEAD}samplingRatePerMillion: 0.5`, /: samplingRatePerMillion: 0\.5 is not/],
      [`${HEAD}samplingRatePerMillion: "1"`, /: samplingRatePerMillion: "1" is not/],
      [`${HEAD}endpoint: http://localhost:4317`, /unsupported scheme \(the protocol is gRPC/],
      [`${HEAD}endpoint: unix-abstract://name`, /unsupported scheme: write host:port/],
      [`${HEAD}endpoint: "dn%2s://localhost:4317"`, /: endpoint: .*unsupported scheme/],
      [`${HEAD}endpoint: unix://path/to/socket`, /unix:\/\/\/path\/of\/a\/socket/],
      [`${HEAD}endpoint: localhost`, /: endpoint: "localhost" is not an address: write host:port/],
      [`${HEAD}endpoint: localhost:99999`, /: endpoint: "localhost:99999" is not an address/],
      [`${HEAD}endpoint: 4317`, /: endpoint: 4317 is not a string/],
      ...['1.2.3.4.5:4317', '999.1.1.1:4317', '"[1:2]:4317"', '"[::1%1]:4317"'].map(
        (sent) => [`${HEAD}endpoint: ${sent}`, /: endpoint: .* is not an address: write/] as const,
      ),
    ] as const) {
      assert.throws(() => readTracingConfig(text), error, text)
    }
  })

  test('does not repeat a password in an endpoint', () => {
    for (const sent of ['user:secret@host:4317', 'http://user:secret@host:4317']) {
      assert.throws(
        () => readTracingConfig(`${HEAD}endpoint: ${sent}`),
        ({ message }: Error) => message.includes('has no @') && !message.includes('secret'),
      )
    }
  })

  test('accepts only addresses and paths as endpoints', () => {
    const sent = fc.oneof(
      fc.string({ maxLength: 40 }),
      fc.stringMatching(/^((dns|unix|http):\/\/\/?)?[a-z.:[\]/0-9]{1,20}(:[0-9]{1,6})?$/),
    )
    fc.assert(
      fc.property(sent, (text) => {
        let endpoint: string
        try {
          ;({ endpoint } = readTracingConfig(`${HEAD}endpoint: ${JSON.stringify(text)}`))
        } catch (error) {
          assert.match(error instanceof Error ? error.message : '', /^endpoint: |not YAML/)
          return
        }
        assert.match(endpoint, /^(unix:\/\/\/\S+|\S+:\d+)$/)
        assert.ok(endpoint.startsWith('unix:') || URL.canParse(`http://${endpoint}`))
      }),
      { numRuns: 500 },
    )
  })
})
