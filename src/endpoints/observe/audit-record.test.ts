import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { StatusError } from '../../api/status.ts'
import { readAuditPolicy } from '../../gate/audit/audit-policy.ts'
import { Auditor } from '../../gate/audit/auditor.ts'
import { makeRequest } from '../../gate/request.fixture.ts'
import { readTarget } from '../../gate/target.ts'
import { type Chunk, ExchangeError, type Request, type Response } from '../../http/exchange.ts'
import { auditBodyBytesMax } from './audit-bodies.ts'
import { AuditRecord, type Failure } from './audit-record.ts'

const PATH = '/apis/events.k8s.io/v1/namespaces/shop/events'
const json = { 'content-type': 'application/json' }

function sending(body: string, change: Partial<Request> = {}): Request {
  return makeRequest({
    method: 'POST',
    path: PATH,
    headers: json,
    peer: { address: '::1', isLoopback: true },
    body: async () => Buffer.from(body),
    ...change,
  })
}

interface Exchange {
  readonly level?: string
  readonly rule?: Record<string, boolean>
  readonly request?: Request
  readonly response?: Partial<Response>
  readonly failure?: Failure
  readonly readsBody?: boolean
}

// biome-ignore lint/suspicious/noExplicitAny: a parsed line of the audit log.
type Line = any

/** Handles a request, and returns the response and the lines written so far. */
async function audited(exchange: Exchange): Promise<{ response: Response; lines: Line[] }> {
  const { level = 'RequestResponse', request = sending('{}'), readsBody = true } = exchange
  const lines: Line[] = []
  const policy = readAuditPolicy({
    apiVersion: 'audit.k8s.io/v1',
    kind: 'Policy',
    rules: [{ level, ...exchange.rule }],
  })
  const auditor = new Auditor({
    policy: () => policy,
    write: (line) => lines.push(JSON.parse(line)),
    written: async () => {},
    wallTime: () => 0,
  })
  const record = new AuditRecord(
    auditor.begin(request, readTarget(request, 'local'), 'id'),
    request,
  )
  record.trail.identified({ name: 'ada', groups: [] })
  const seen = record.request()
  assert.equal(seen.path, request.path)
  if (readsBody) await seen.body()
  const response = { status: 200, headers: json, body: '{"kind":"Event"}\n', ...exchange.response }
  return { response: await record.complete(response, exchange.failure), lines }
}

const last = async (exchange: Exchange): Promise<Line> => (await audited(exchange)).lines.at(-1)

async function drain(body: Response['body']): Promise<string> {
  let text = ''
  for await (const chunk of body as AsyncIterable<Chunk>) text += Buffer.from(chunk).toString()
  return text
}

async function* pieces(...texts: readonly string[]): AsyncGenerator<string> {
  yield* texts
}

describe('audit record', () => {
  test('logs bodies according to the level', async () => {
    const request = sending('{ "note" : "sent" }')
    const response = { body: '{\n  "note": "returned"\n}' }
    const logged = async (level: string) => {
      const { requestObject, responseObject } = await last({ level, request, response })
      return [requestObject, responseObject]
    }
    assert.deepEqual(await logged('Metadata'), [undefined, undefined])
    assert.deepEqual(await logged('Request'), [{ note: 'sent' }, undefined])
    assert.deepEqual(await logged('RequestResponse'), [{ note: 'sent' }, { note: 'returned' }])
  })

  test('a body that the handler does not read is not read for the log', async () => {
    let reads = 0
    const request = sending('', {
      body: async () => {
        reads += 1
        return Buffer.from('{}')
      },
    })
    const line = await last({ request, readsBody: false })
    assert.equal(reads, 0)
    assert.equal(line.requestObject, undefined)
  })

  test('JSON in all its media types and YAML are logged; other and malformed bodies are not', async () => {
    const logged = async (type: string | undefined, body: string): Promise<Line> => {
      const headers = type === undefined ? {} : { 'content-type': type }
      return (await last({ request: sending(body, { headers }) })).requestObject
    }
    assert.deepEqual(await logged(undefined, '{"a":1}'), { a: 1 })
    assert.deepEqual(await logged('application/json; charset=utf-8', '{"a":1}'), { a: 1 })
    assert.deepEqual(await logged('application/json-patch+json', '[{"op":"remove"}]'), [
      { op: 'remove' },
    ])
    assert.deepEqual(await logged('application/apply-patch+yaml', 'a: [1]\n'), { a: [1] })
    assert.deepEqual(await logged('application/yaml', 'a: 1\n'), { a: 1 })
    assert.equal(await logged('text/plain', '{"a":1}'), undefined)
    assert.equal(await logged('application/json', '{"a":'), undefined)
    assert.equal(await logged('application/yaml', 'a: [1\n'), undefined)
    assert.equal(await logged('application/json', ''), undefined)
    assert.equal(await logged('application/json', '['.repeat(90_000) + ']'.repeat(9000)), undefined)
  })

  test('members with names that every object inherits are logged like others', async () => {
    const { requestObject } = await last({ request: sending('{"__proto__":{"a":1}}') })
    assert.equal(JSON.stringify(requestObject), '{"__proto__":{"a":1}}')
  })

  test('omits a body that is too long, and marks the line', async () => {
    const long = JSON.stringify({ note: 'x'.repeat(auditBodyBytesMax) })
    for (const line of [
      await last({ request: sending(long) }),
      await last({ response: { body: long } }),
      await last({ response: { headers: { ...json, 'content-encoding': 'gzip' } } }),
    ]) {
      assert.equal(line.annotations['audit.k8s.io/truncated'], 'true')
      assert.ok(JSON.stringify(line).length < 2000)
    }
    assert.equal((await last({})).annotations, undefined)
    const script = { 'content-type': 'text/javascript', 'content-encoding': 'br' }
    assert.equal((await last({ response: { headers: script } })).annotations, undefined)
  })

  test('omits managed fields if the policy says so', async () => {
    const object = { metadata: { name: 'e', managedFields: [{ manager: 'm' }] }, note: 'n' }
    const request = sending(JSON.stringify(object))
    const response = { body: JSON.stringify({ items: [object, 7, object] }) }
    const line = await last({ rule: { omitManagedFields: true }, request, response })
    const bare = { metadata: { name: 'e' }, note: 'n' }
    assert.deepEqual(line.requestObject, bare)
    assert.deepEqual(line.responseObject, { items: [bare, 7, bare] })
    const logged = await last({ request })
    assert.deepEqual(logged.requestObject, object)
  })

  test('the line of a create has the generated name', async () => {
    const body =
      '{"kind":"Event","apiVersion":"events.k8s.io/v1","metadata":{"resourceVersion":"7","name":"e.7","x":1}}'
    const indented = JSON.stringify(JSON.parse(body), undefined, 2)
    for (const encoded of [body, Buffer.from(body), indented]) {
      const line = await last({ level: 'Metadata', response: { status: 201, body: encoded } })
      assert.equal(line.objectRef.name, 'e.7')
    }
    const line = await last({ level: 'Metadata', response: { status: 201, body: 'kind: Event' } })
    assert.equal(line.objectRef.name, undefined)
  })

  test('a stream is logged at its end, with its content', async () => {
    const streamed = { body: pieces('{"items":', '[]}') }
    const { response, lines } = await audited({ response: streamed })
    assert.equal(lines.length, 1)
    assert.equal(await drain(response.body), '{"items":[]}')
    response.onEnd?.({ status: 200, bytes: 12 })
    assert.equal(lines[1].stage, 'ResponseComplete')
    assert.deepEqual(lines[1].responseObject, { items: [] })
  })

  test('the request body is logged with a stream that ends after the headers are freed', async () => {
    let headers: Record<string, string> = { 'content-type': 'application/yaml' }
    const request = {
      ...sending('kind: DeleteOptions\n'),
      get headers() {
        return headers
      },
    }
    const body = (async function* () {
      yield '{}'
    })()
    const { response, lines } = await audited({ request, response: { body } })
    headers = {}
    await drain(response.body)
    response.onEnd?.({ status: 200, bytes: 2 })
    assert.deepEqual(lines.at(-1).requestObject, { kind: 'DeleteOptions' })
  })

  test('sends a stream that is too long completely, and does not log it', async () => {
    const many = Array.from({ length: 5 }, () => 'x'.repeat(auditBodyBytesMax / 2))
    const { response, lines } = await audited({ response: { body: pieces(...many) } })
    assert.equal((await drain(response.body)).length, 2.5 * auditBodyBytesMax)
    response.onEnd?.({ status: 200, bytes: 1 })
    assert.equal(lines[1].annotations['audit.k8s.io/truncated'], 'true')
    assert.equal(lines[1].responseObject, undefined)
  })

  test('a watch is logged at its start and at its end, without its content', async () => {
    let ends = 0
    const { response, lines } = await audited({
      response: { body: pieces('{}'), longRunning: true, onEnd: () => ends++ },
    })
    assert.deepEqual(
      lines.map(({ stage }) => stage),
      ['RequestReceived', 'ResponseStarted'],
    )
    response.onEnd?.({ status: 200, bytes: 0 })
    assert.equal(lines[2].stage, 'ResponseComplete')
    assert.equal(lines[2].responseObject, undefined)
    assert.equal(ends, 1)
  })

  test('a response that was replaced is logged with the status that was sent', async () => {
    const { response, lines } = await audited({ response: { body: pieces('') } })
    response.onEnd?.({ status: 504, bytes: 0 })
    assert.equal(lines[1].responseStatus.code, 504)

    const controller = new AbortController()
    controller.abort(new ExchangeError('timeout', 'too late'))
    const line = await last({ request: sending('{}', { signal: controller.signal }) })
    assert.equal(line.responseStatus.code, 504)
    assert.equal(line.responseStatus.reason, 'Timeout')
  })

  test('an error is logged with its reason, a bug as a panic', async () => {
    const error = new StatusError('NotFound', 'not here')
    const line = await last({ response: { status: 404 }, failure: { error, isPanic: false } })
    assert.equal(line.stage, 'ResponseComplete')
    assert.equal(line.responseStatus.reason, 'NotFound')
    const bug = new StatusError('InternalError', 'no detail')
    const panic = await last({ response: { status: 500 }, failure: { error: bug, isPanic: true } })
    assert.equal(panic.stage, 'Panic')
  })
})
