/**
 * The commands of docs/how-to/questions.md, with the oldest and the newest kubectl, on 5,000 realistic
 * events. What they print must be what a plain filter over these events finds.
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { ageText } from '../../../src/codec/encoders/table.ts'
import { KubectlSession, OLDEST, RECORDED_WITH, whyNot } from '../../nightly/kubectl/kubectl.ts'
import { type PlainEvent, plainEvent, textOf, treeOf } from '../../nightly/model/plain-event.ts'
import { answer, type PlainQuery, valuesOf } from '../../nightly/model/plain-query.ts'
import { plainSummary } from '../../nightly/model/plain-summary.ts'
import { EventClient } from '../../support/event-client.ts'
import { inParallel } from '../../support/load.ts'
import { realisticEvents } from '../../support/realistic-events.ts'
import { asCore, isOldStyle } from '../../support/recorder-styles.ts'
import { ADMIN_TOKEN } from '../../support/replicas.ts'
import { testSeed } from '../../support/seed.ts'
import { makeEvent, type WireEvent } from '../../support/wire-event.ts'

const EVENTS = 5_000
const MINUTE_MS = 60_000
/** The ages in minutes that commands select by. */
const EDGES = [10, 20, 60, 285, 315]
/** No event is so near to one of them that it gets there while the test runs. */
const EDGE_MS = 3 * MINUTE_MS

/** Labels that select nothing. */
const OPTIONS = ['order', 'limit', 'groupBy', 'buckets', 'by']

/** In incidents.test.ts, on events of which it is known what belongs together. */
const INCIDENTS = [
  'What is going on?',
  'What is new compared with yesterday?',
  'What happened to this Deployment?',
  'What happened on this node?',
]

/** Questions about other resources than events, each with a test of its own. */
const COMPUTED = [
  'Who is flooding us?',
  'How many events of each reason and controller in the last hour?',
  'When did the Warnings begin?',
  'How far back are events kept?',
]

interface Question {
  readonly title: string
  readonly command: string
}

const page = readFileSync(join(import.meta.dirname, '../../../docs/how-to/questions.md'), 'utf8')
const questions: readonly Question[] = page
  .split(/^## /m)
  .map((section) => ({
    title: section.split('\n')[0] ?? '',
    command: /^```sh\n(.*)\n```$/m.exec(section)?.[1] ?? '',
  }))
  .filter(({ command }) => command !== '')

const isOfEvents = ({ title, command }: Question): boolean =>
  command.startsWith('kubectl get events ') && !INCIDENTS.includes(title)
const isWatch = ({ command }: Question): boolean => command.includes('--watch')

for (const version of [OLDEST, RECORDED_WITH]) {
  describe(`questions with kubectl ${version}`, { skip: whyNot(version) }, () => {
    const nowMs = Date.now()
    const seed = testSeed()
    const made = madeEvents(seed, nowMs)
    const state = made.map((event, index) => plainOf(event, index))
    let session: KubectlSession
    let client: EventClient

    before(async () => {
      session = await KubectlSession.start(version, '')
      const { port, ca } = session.server
      client = await EventClient.open({ port, ca, token: ADMIN_TOKEN })
      await inParallel(made.length, 50, (index) => create(client, made[index]))
    })
    after(async () => {
      client[Symbol.dispose]()
      await session[Symbol.asyncDispose]()
    })

    for (const question of questions.filter(isOfEvents).filter((each) => !isWatch(each))) {
      test(question.title, async (t) => {
        t.diagnostic(`seed ${seed}`)
        const command = withTimesOfTest(question.command, nowMs)
        const { output, exitCode } = await session.run(command)
        assert.equal(exitCode, 0)
        const expected = rowsFor(command, answer(state, queryOf(command), nowMs))
        assert.notEqual(expected.length, 0, 'the question has an answer')
        assert.deepEqual(rowsOf(output), expected)
      })
    }

    test('Who is flooding us?', async () => {
      const [first = []] = await linesOf(session, 'Who is flooding us?')
      const busiest = plainSummary(state, ['controller'])
        .toSorted((one, other) => other.events - one.events)
        .map(({ values, occurrences, events, objects }) => [
          ...values,
          ...[occurrences, events, objects].map(String),
        ])
      assert.deepEqual(first.slice(0, 4), busiest[0])
      assert.match(first[4] ?? '', /^[1-9]\d*\/min$/)
    })

    test('How many events of each reason and controller in the last hour?', async (t) => {
      const beforeMs = Date.now()
      const lines = await linesOf(session, t.name)
      // Series that began earlier have fewer and fewer occurrences in the last hour.
      const [most, least] = [beforeMs, Date.now()].map((ms) => {
        const groups = plainSummary(state, ['reason', 'controller'], {
          sinceMs: ms - 60 * MINUTE_MS,
          untilMs: Number.POSITIVE_INFINITY,
        })
        return new Map(groups.map((group) => [group.values.join('  '), group]))
      })
      assert.equal(lines.length, most?.size)
      for (const [reason, controller, ...counts] of lines) {
        const [upper, lower] = [most, least].map((map) => map?.get(`${reason}  ${controller}`))
        assert.ok(upper !== undefined && lower !== undefined, `${reason} of ${controller}`)
        const [occurrences = 0, events, objects] = counts.slice(0, 3).map(Number)
        assert.deepEqual([events, objects], [upper.events, upper.objects])
        const isBetween = lower.occurrences <= occurrences && occurrences <= upper.occurrences
        assert.ok(
          isBetween,
          `${occurrences} of ${reason}: ${lower.occurrences} to ${upper.occurrences}`,
        )
      }
      assert.ok([...(most?.values() ?? [])].some(({ isEstimated }) => isEstimated))
      const sorted = lines.map(([, , occurrences]) => Number(occurrences))
      assert.deepEqual(
        sorted,
        sorted.toSorted((one, other) => other - one),
      )
    })

    test('When did the Warnings begin?', async (t) => {
      const lines = await linesOf(session, t.name)
      assert.equal(lines.length, 24)
      const warnings = answer(state, queryOf(commandOf(t.name)), nowMs)
      const total = lines.reduce((sum, [, , count]) => sum + Number(count), 0)
      assert.equal(
        total,
        warnings.reduce((sum, { occurrences }) => sum + occurrences, 0),
      )
    })

    test('How far back are events kept?', async (t) => {
      const beforeMs = Date.now()
      const lines = await linesOf(session, t.name)
      const namespaces = [...new Set(state.map(({ key }) => key.namespace))].sort()
      assert.deepEqual(
        lines.map((cells) => cells.slice(0, -4)),
        [
          ['local', String(state.length)],
          ...namespaces.map((name) => {
            const { length } = answer(state, { ...queryOf(''), namespace: name }, nowMs)
            return [name, name, String(length)]
          }),
        ],
      )
      const oldestMs = Math.min(...state.map(({ lastSeenMs }) => lastSeenMs))
      const ages = [beforeMs, Date.now()].map((ms) => ageText(ms - oldestMs))
      assert.ok(ages.includes(lines[0]?.[3] ?? ''), `${lines[0]} for ${ages}`)
    })

    test('a mistake gets an answer that says what to write', async () => {
      for (const [selector, expected] of [
        ['mentions=checkout', /^Error from server .* such as Pod\/checkout, or a uid\n$/],
        ["'reason in (A,B)'", /write reason=A\|B\n$/],
        ['involvedObject.kind=pod', /^Warning: .*: write involvedObject.kind=Pod\n/],
        ['reason=A,reason=B', /^Warning: .*; for either write reason=A\|B\n/],
      ] as const) {
        const command = `kubectl get events -A --field-selector ${selector}`
        assert.match((await session.run(command)).output, expected)
      }
    })

    // The last one, because it creates events.
    for (const question of questions.filter(isWatch)) {
      test(question.title, async () => {
        const before = rowsFor(question.command, answer(state, queryOf(question.command), nowMs))
        await using running = session.start(question.command)
        await running.printed(before.length + 1)
        const eventTime = new Date().toISOString().replace('Z', '000Z')
        const note = `seen by ${version}`
        for (const [namespace, type] of [
          ['billing', 'Warning'],
          ['shop', 'Normal'],
          ['shop', 'Warning'],
        ] as const) {
          await client.create(
            makeEvent(namespace, `new-${type.toLowerCase()}`, { type, note, eventTime }),
          )
        }
        await running.printed(before.length + 2)
        const after = [...before, ['Warning', 'Tested', 'pod/pod-0', '1', note]]
        assert.deepEqual(rowsOf(running.output), after)
      })
    }
  })
}

test('every command of the page is run', () => {
  assert.equal(page.match(/^```sh$/gm)?.length, questions.length)
  const computed = questions.filter((question) => !isOfEvents(question))
  assert.deepEqual(
    computed.map(({ title }) => title),
    [...INCIDENTS, ...COMPUTED],
  )
})

function commandOf(title: string): string {
  const { command = '' } = questions.find((question) => question.title === title) ?? {}
  return command
}

/** The cells that the command of a question prints, without its header. */
async function linesOf(session: KubectlSession, title: string): Promise<readonly string[][]> {
  const { output, exitCode } = await session.run(commandOf(title))
  assert.equal(exitCode, 0, output)
  return output
    .trimEnd()
    .split('\n')
    .slice(1)
    .map((line) => line.trim().split(/ {2,}/))
}

function madeEvents(seed: number, nowMs: number): readonly WireEvent[] {
  const isClear = (event: WireEvent): boolean => {
    const ageMs = nowMs - plainOf(event, 0).lastSeenMs
    return EDGES.every((edge) => Math.abs(ageMs - edge * MINUTE_MS) > EDGE_MS)
  }
  return realisticEvents({ seed, count: 2 * EVENTS, nowMs })
    .filter(isClear)
    .slice(0, EVENTS)
}

function plainOf(event: WireEvent, index: number): PlainEvent {
  const { namespace, name } = event.metadata
  return plainEvent({ cluster: 'local', namespace, name }, index, event)
}

async function create(client: EventClient, event: WireEvent | undefined): Promise<void> {
  if (event === undefined || !isOldStyle(event)) {
    if (event !== undefined) await client.create(event)
    return
  }
  const { status, body } = await client.request({
    method: 'POST',
    path: `/api/v1/namespaces/${event.metadata.namespace}/events`,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(asCore(event)),
  })
  assert.equal(status, 201, body.toString())
}

/** The times on the page, in order, are replaced by two times of the test. */
function withTimesOfTest(command: string, nowMs: number): string {
  const ages = [4 * 60, 3 * 60 + 45]
  return command.replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/g, () => {
    const age = ages.shift() ?? 0
    return `${new Date(nowMs - age * MINUTE_MS).toISOString().slice(0, 19)}Z`
  })
}

/** What the command asks for, by its own words. */
function queryOf(command: string): PlainQuery {
  const [, namespace = ''] = / -n (\S+)/.exec(command) ?? []
  const [, selector = ''] = / --field-selector '?([^\s']+)/.exec(command) ?? []
  const terms = selector.split(',').map((text) => {
    const [label = '', value = ''] = text.split('=')
    return { label, operator: '=' as const, values: valuesOf(value) }
  })
  const order = terms.find(({ label }) => label === 'order')?.values[0]?.text
  return {
    cluster: '*',
    namespace,
    terms: terms.filter(({ label }) => !OPTIONS.includes(label)),
    order: order === 'newest' ? 'newest' : 'oldest',
  }
}

/** The cells that a command prints for these events, without ages. */
function rowsFor(command: string, events: readonly PlainEvent[]): string[][] {
  const [, limit] = /[ ,]limit=(\d+)/.exec(command) ?? []
  return events
    .slice(0, limit === undefined ? undefined : Number(limit))
    .map(({ key, tree, occurrences }) => {
      const regarding = treeOf(tree, 'regarding')
      const object = `${textOf(regarding, 'kind').toLowerCase()}/${textOf(regarding, 'name')}`
      const cells = [
        textOf(tree, 'type'),
        textOf(tree, 'reason'),
        object,
        String(occurrences),
        textOf(tree, 'note'),
      ]
      return command.includes(' -A') ? [key.namespace, ...cells] : cells
    })
}

/** The cells of the printed rows, without the header and the ages. */
function rowsOf(output: string): string[][] {
  return output
    .split('\n')
    .filter((line) => line !== '' && !line.includes('LAST SEEN'))
    .map((line) => line.split(/ {2,}/).filter((cell) => !/^(\d+[dhms]){1,2}$/.test(cell)))
}
