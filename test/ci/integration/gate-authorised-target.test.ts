/**
 * Endpoints execute what the gate authorised, for 100,000 generated requests, or as many as given
 * (`npm test -- targets`: a million): the same verb,
 * namespace, name and subresource. A run prints its seed; `TIDINGS_TEST_SEED=n` repeats it.
 */
import assert from 'node:assert/strict'
import { argv } from 'node:process'
import { test } from 'node:test'
import { StatusError } from '../../../src/api/status.ts'
import { type EventEndpoints, eventsBelow } from '../../../src/endpoints/events/events-service.ts'
import { readListOptions } from '../../../src/endpoints/request/list-options.ts'
import { admitted } from '../../../src/gate/admitted.fixture.ts'
import type { Attributes } from '../../../src/gate/attributes.ts'
import { Gate } from '../../../src/gate/gate.ts'
import { readTarget } from '../../../src/gate/target.ts'
import type { Request, Response } from '../../../src/http/exchange.ts'
import { namedBy } from '../../../src/registry/read/event-selector.ts'
import { Random } from '../../support/random.ts'
import { testSeed } from '../../support/seed.ts'

const TARGETS = Number(argv[2] ?? 100_000)
const PREFIXES = ['/apis/events.k8s.io/v1/', '/api/v1/'] as const

const METHODS = ['GET', 'GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'get'] as const
/** Below the prefix, and whether a valid path can begin so. */
const STARTS = [
  ['', true],
  ['', true],
  ['watch/', true],
  ['/', false],
  ['watch/watch/', false],
] as const
const NAMESPACES = ['a', 'b', '.', '..', '%2F', 'events', 'watch', 'namespaces', ''] as const
/** Behind `events`, and what it makes of the path. */
const ENDS = [
  ['', 'collection'],
  ['/', 'collection'],
  ['/x', 'object'],
  ['/x/', 'object'],
  ['//', 'none'],
  ['/x/status', 'none'],
  ['//x', 'none'],
  ['s', 'none'],
] as const
const PARTS = ['events', 'namespaces', 'watch', 'a', 'b', '', '.', '..', 'status', '%2F', 'pods']
/** Values of `watch`, and what they mean. */
const WATCH = [
  ['', true],
  ['0', false],
  ['1', true],
  ['true', true],
  ['false', false],
  ['FALSE', false],
  ['no', true],
] as const
const FIELDS = ['metadata.name', 'metadata.namespace', 'type', ' metadata.name', 'Metadata.name']
const OPERATORS = ['=', '==', '!=']
const VALUES = [
  ...['a', 'b', '', 'a\\,b', 'a%2Cb', '..', 'a/b', '*', 'a\\=b', 'a=b'],
  ...['a|b', 'a*', 'a\\|b', 'b|a*', 'a\\*'],
]

/** What must be executed, known from how the request was made and not from parsing it. */
interface Expected {
  /** '' when no endpoint may run. */
  readonly verb: string
  readonly namespace: string
  /** The name of the object in the path. */
  readonly name: string
}

interface Made {
  readonly request: Request
  /** Undefined for a path of random parts: then only what was authorised is known. */
  readonly expected: Expected | undefined
}

class Requests {
  readonly #random: Random

  constructor(seed: number) {
    this.#random = new Random(seed)
  }

  next(): Made {
    const query = new URLSearchParams()
    const method = this.#of(METHODS)
    let wantsWatch = false
    if (this.#random.next() < 0.5) {
      const [text, meaning] = this.#of(WATCH)
      query.append('watch', text)
      wantsWatch = meaning
    }
    while (this.#random.next() < 0.4) query.append('fieldSelector', this.#selector())
    const { path, expected } = this.#path(method, wantsWatch)
    return {
      request: { method, path, query, headers: {} } as Partial<Request> as Request,
      expected,
    }
  }

  #path(method: string, wantsWatch: boolean): { path: string; expected: Expected | undefined } {
    const prefix = this.#of(PREFIXES)
    if (this.#random.next() < 0.2) {
      const parts = Array.from({ length: this.#random.next() * 7 }, () => this.#of(PARTS))
      return { path: `${prefix}${parts.join('/')}`, expected: undefined }
    }
    const [start, canStart] = this.#of(STARTS)
    const [end, kind] = this.#of(ENDS)
    const isNamespaced = this.#random.next() < 0.7
    const namespace = isNamespaced ? this.#of(NAMESPACES) : ''
    const path = `${prefix}${start}${isNamespaced ? `namespaces/${namespace}/` : ''}events${end}`
    const isServed =
      canStart && kind !== 'none' && (isNamespaced ? namespace !== '' : kind === 'collection')
    if (!isServed) return { path, expected: NOTHING }
    const at = kind === 'object' ? 'object' : isNamespaced ? 'collection' : 'everything'
    const verb =
      start === 'watch/' ? (method === 'GET' ? 'watch' : '') : verbAt(at, method, wantsWatch)
    return { path, expected: { verb, namespace, name: kind === 'object' ? 'x' : '' } }
  }

  #selector(): string {
    const terms: string[] = []
    do terms.push(`${this.#of(FIELDS)}${this.#of(OPERATORS)}${this.#of(VALUES)}`)
    while (this.#random.next() < 0.4)
    return terms.join(',')
  }

  #of<T>(values: readonly T[]): T {
    return values[this.#random.below(values.length)] as T
  }
}

const NOTHING: Expected = { verb: '', namespace: '', name: '' }

function verbAt(
  at: 'object' | 'collection' | 'everything',
  method: string,
  wantsWatch: boolean,
): string {
  const many = wantsWatch ? 'watch' : 'list'
  const verbs: Readonly<Record<string, Readonly<Record<string, string>>>> = {
    object: { GET: 'get', PUT: 'update', PATCH: 'patch', DELETE: 'delete' },
    collection: { GET: many, POST: 'create', DELETE: 'deletecollection' },
    everything: { GET: many },
  }
  return verbs[at]?.[method] ?? ''
}

const VERBS = ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete', 'deletecollection']
const OK: Response = { status: 200, headers: {}, body: '' }

/** A gate and endpoints that record what was authorised and what ran. */
class Recorder {
  readonly counts = new Map<string, number>()
  #authorised: Attributes | undefined
  #run: Expected | undefined
  readonly #gate = new Gate({
    authenticators: [{ authenticate: () => ({ name: 'ada', groups: [] }) }],
    authorizers: [
      {
        decide: async (_, attributes) => {
          this.#authorised = attributes
          return { verdict: 'allow' }
        },
      },
    ],
    allowsAnonymous: false,
  })
  readonly #finds = PREFIXES.map((prefix) => eventsBelow(prefix, this.#endpoints()))

  /** What ran; undefined when the request was refused. */
  async run(request: Request): Promise<Expected | undefined> {
    this.#authorised = undefined
    this.#run = undefined
    const target = readTarget(request, 'local')
    const handler = this.#finds[0]?.(target) ?? this.#finds[1]?.(target)
    if (handler === undefined) return undefined
    const caller = await admitted(this.#gate, request, target, { isOpenToHost: false })
    try {
      await handler(request, caller)
    } catch (error) {
      // 404 and 405; a failed assertion is not a StatusError.
      if (!(error instanceof StatusError)) throw error
    }
    return this.#run
  }

  #endpoints(): EventEndpoints {
    const made = VERBS.map((verb) => [verb, this.#endpoint(verb)])
    return Object.fromEntries(made) as unknown as EventEndpoints
  }

  #endpoint(verb: string): EventEndpoints['list'] {
    return async ({ path }, target) => {
      const { place } = target
      const authorised = this.#authorised
      assert.ok(authorised?.isResource, path)
      assert.equal(authorised.verb, verb, path)
      assert.equal(authorised.resource, 'events', path)
      assert.equal(authorised.subresource, '', path)
      const namespace = place.kind === 'everything' ? '' : place.namespace
      assert.equal(authorised.namespace, namespace, path)
      if (place.kind === 'object') assert.equal(authorised.name, place.name, path)
      else if (authorised.name !== '') assertSelects(target, authorised.name)
      this.#run = { verb, namespace, name: place.kind === 'object' ? place.name : '' }
      this.counts.set(verb, (this.counts.get(verb) ?? 0) + 1)
      return OK
    }
  }
}

test(`an endpoint executes what was authorised, for ${TARGETS} targets`, async (context) => {
  const seed = testSeed()
  context.diagnostic(`seed ${seed}`)
  const recorder = new Recorder()
  const requests = new Requests(seed)
  for (let count = 0; count < TARGETS; count++) {
    const { request, expected } = requests.next()
    const run = await recorder.run(request)
    if (expected === undefined) continue
    const wanted = expected.verb === '' ? undefined : expected
    assert.deepEqual(run, wanted, `${request.method} ${request.path}?${request.query}`)
  }
  const { counts } = recorder
  context.diagnostic(JSON.stringify(Object.fromEntries(counts)))
  assert.equal(counts.size, VERBS.length)
  for (const [verb, count] of counts) assert.ok(count > TARGETS / 1000, `${verb}: ${count}`)
})

/** A list or watch that is authorised for one name returns events of that name or none. */
function assertSelects(target: Parameters<EventEndpoints['list']>[1], name: string): void {
  const { isImpossible, name: selected } = namedBy(readListOptions(target).fieldSelector)
  assert.ok(isImpossible || selected === name, target.path)
}
