import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Json } from '../../../src/lib/json.ts'
import type { Answer } from './client.ts'
import { judge } from './compare.ts'
import { alterations, PLACE, rightAnswer, withBody } from './made-answers.ts'
import { loadRecording, type Step, SUITES } from './recording.ts'

const everyStep = SUITES.flatMap((suite) =>
  loadRecording(suite).steps.map((step, index) => ({ step, name: `${suite}[${index}]` })),
)
const stepOf = (suite: string, index: number): Step => {
  const step = loadRecording(suite).steps[index]
  assert.ok(step)
  return step
}
const said = (answer: Answer): string => answer.body.toString('utf8')
const altered = (step: Step, change: (body: string) => string): readonly string[] => {
  const answer = rightAnswer(step)
  return judge(step, withBody(answer, change(said(answer))), PLACE)
}

describe('judge, on every recorded step', () => {
  test('a correct response passes', () => {
    const wrong = everyStep.flatMap(({ step, name }) =>
      judge(step, rightAnswer(step), PLACE).map((line) => `${name}: ${line}`),
    )
    assert.deepEqual(wrong, [])
  })

  test('another status fails', () => {
    for (const { step, name } of everyStep) {
      const answer = rightAnswer(step)
      assert.equal(judge(step, { ...answer, status: answer.status + 1 }, PLACE).length, 1, name)
    }
  })

  test('each recorded header that is missing or different fails', () => {
    for (const { step, name } of everyStep) {
      const answer = rightAnswer(step)
      for (const header of Object.keys(answer.headers)) {
        for (const value of [undefined, 'another']) {
          const headers = { ...answer.headers, [header]: value }
          assert.notDeepEqual(judge(step, { ...answer, headers }, PLACE), [], `${name} ${header}`)
        }
      }
    }
  })

  test('a warning where none is recorded fails', () => {
    for (const { step, name } of everyStep) {
      const answer = rightAnswer(step)
      if (answer.headers['warning'] !== undefined) continue
      const headers = { ...answer.headers, warning: '299 - "mind the gap"' }
      assert.notDeepEqual(judge(step, { ...answer, headers }, PLACE), [], name)
    }
  })

  test('a body that is empty, cut short or of another kind fails', () => {
    for (const { step, name } of everyStep) {
      const answer = rightAnswer(step)
      if (answer.body.length === 0 || step.answer.base64 !== undefined) continue
      for (const body of ['', said(answer).slice(0, -3), '{"kind":"Other"}\n']) {
        assert.notDeepEqual(judge(step, withBody(answer, body), PLACE), [], `${name} ${body}`)
      }
    }
  })

  test('each member that is missing, added or different fails', () => {
    let count = 0
    for (const { step, name } of everyStep) {
      const expected = step.ours?.answer ?? step.answer
      if (expected.json === undefined || expected.layout !== undefined) continue
      if (step.match !== undefined && step.ours === undefined) continue
      const answer = rightAnswer(step)
      for (const other of alterations(JSON.parse(said(answer)) as Json)) {
        count++
        assert.notDeepEqual(
          judge(step, withBody(answer, JSON.stringify(other)), PLACE),
          [],
          `${name} ${JSON.stringify(other)}`,
        )
      }
    }
    assert.ok(count > 10_000, String(count))
  })

  test('a frame too many, too few, in another order or of another type fails', () => {
    for (const { step, name } of everyStep) {
      const { frames } = step.ours?.answer ?? step.answer
      if (frames === undefined || step.match !== undefined) continue
      const answer = rightAnswer(step)
      for (const other of otherLines(said(answer).split('\n').slice(0, -1))) {
        const body = other.map((line) => `${line}\n`).join('')
        assert.notDeepEqual(judge(step, withBody(answer, body), PLACE), [], `${name} ${body}`)
      }
    }
  })
})

function otherLines(lines: readonly string[]): readonly (readonly string[])[] {
  return [
    [...lines, '{"type":"BOOKMARK","object":{}}'],
    ...(lines.length > 0 ? [lines.slice(1), lines.with(0, '{"type":"ADDED"}')] : []),
    ...(lines.length > 1 ? [lines.toReversed()] : []),
  ]
}

describe('judge', () => {
  const get = stepOf('get', 1)
  const watch = stepOf('watch', 4)
  const limitedWatch = stepOf('watch', 13)

  test('names each place that differs', () => {
    const wrong = altered(get, (body) =>
      body.replace('"reason":"Scheduled"', '"reason":"Bound","surprise":1'),
    )
    assert.deepEqual(wrong, ['.reason: "Bound", wanted "Scheduled"', '.surprise: unexpected 1'])
  })

  test('reports a wrong status with the message of the server', () => {
    const answer = { ...rightAnswer(get), status: 500 }
    assert.deepEqual(judge(get, withBody(answer, '{"message":"no luck"}'), PLACE), [
      'status 500, wanted 200 (no luck)',
    ])
  })

  test('a version, uid or time in the wrong format fails', () => {
    for (const [from, to] of [
      [/"resourceVersion":"\d+"/, '"resourceVersion":"0"'],
      [/"resourceVersion":"\d+"/, '"resourceVersion":"1a"'],
      [/"uid":"[^"]+"/, '"uid":"42"'],
      [/"creationTimestamp":"[^"]+"/, '"creationTimestamp":"2026-11-15T03:14:15.123Z"'],
      [/"namespace":"[^"]+"/, '"namespace":"elsewhere"'],
    ] as const) {
      assert.equal(altered(get, (body) => body.replace(from, to)).length, 1, to)
    }
  })

  test('managedFields fail outside of apply', () => {
    assert.deepEqual(
      altered(get, (body) => body.replace('"uid"', '"managedFields":[],"uid"')),
      ['.metadata.managedFields: unexpected []'],
    )
  })

  test('an open stream that ends fails, and so does one that should end and does not', () => {
    assert.deepEqual(judge(watch, { ...rightAnswer(watch), ended: true }, PLACE), [
      'the stream ended by itself',
    ])
    assert.deepEqual(judge(limitedWatch, { ...rightAnswer(limitedWatch), ended: false }, PLACE), [
      'the stream did not end',
    ])
  })

  test('a last line without a line break fails', () => {
    assert.deepEqual(
      altered(watch, (body) => `${body}{"type":`),
      ['a line without an end: "{\\"type\\":"'],
    )
  })

  test('field names are those that the caller sent', () => {
    const step = stepOf('create-invalid', 6)
    assert.deepEqual(judge(step, rightAnswer(step), PLACE), [])
    assert.match(said(rightAnswer(step)), /regarding\.namespace/)
    assert.equal(altered(step, (body) => body.replaceAll('regarding', 'involvedObject')).length, 2)
  })

  test('code and reason are enough where the message is specific to the other server', () => {
    const step = stepOf('get', 5)
    assert.equal(step.match, 'status-and-reason')
    const status = (more: object): string =>
      JSON.stringify({ kind: 'Status', reason: 'BadRequest', code: 400, ...more })
    assert.deepEqual(
      altered(step, () => status({ message: 'our own words' })),
      [],
    )
    assert.equal(altered(step, () => status({ reason: 'Invalid' })).length, 1)
    assert.equal(altered(step, () => status({ code: 422 })).length, 1)
  })

  test('our own promise is compared instead of the recording where we differ on purpose', () => {
    const step = stepOf('deletecollection', 15)
    assert.deepEqual(judge(step, rightAnswer(step), PLACE), [])
    const { ours: _, ...theirs } = step
    assert.notDeepEqual(judge(step, rightAnswer(theirs), PLACE), [])
  })

  test('an error without the promised message fails', () => {
    const step = stepOf('patch', 24)
    assert.equal(altered(step, (body) => body.replace('/reason', 'something')).length, 1)
  })

  test('the layout is compared where it was recorded', () => {
    for (const [suite, index] of [
      ['create-valid', 15],
      ['create-valid', 16],
    ] as const) {
      const step = stepOf(suite, index)
      const tree = (body: string): Json => JSON.parse(body)
      const other = step.answer.layout === 'pretty' ? undefined : 2
      assert.equal(
        altered(step, (body) => JSON.stringify(tree(body), undefined, other)).length,
        1,
        `${suite}[${index}]`,
      )
    }
  })

  test('Retry-After must equal the value in the body', () => {
    const step = stepOf('edge-write', 21)
    const answer = rightAnswer(step)
    const later = withBody(answer, said(answer).replace('{', '{"details":{"retryAfterSeconds":3},'))
    const inTime = { ...later, headers: { ...later.headers, 'retry-after': '3' } }
    assert.deepEqual(judge(step, inTime, PLACE), [])
    assert.deepEqual(judge(step, later, PLACE), ['retry-after: nothing, the body says 3'])
  })

  test('a YAML document is compared as a tree', () => {
    const step = stepOf('discovery', 5)
    const yaml = 'kind: APIGroup\napiVersion: v1\nname: "events.k8s.io"\n'
    const rest = JSON.stringify(step.answer.yaml)
    assert.deepEqual(
      altered(step, () => rest),
      [],
    )
    assert.equal(altered(step, () => yaml).length, 2)
    assert.equal(altered(step, () => ': [').length, 1)
  })
})
