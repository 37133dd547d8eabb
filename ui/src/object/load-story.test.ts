import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ApiError } from '../api/api-error.ts'
import type { ApiClient, Ask } from '../api/client.ts'
import { readAbout } from '../model/about.ts'
import { loadStory, type Story, type StoryOptions } from './load-story.ts'

const about = readAbout('Pod/shop/web-0')
const involvedObject = { kind: 'Pod', namespace: 'shop', name: 'web-0' }

/** The namespace has one event a page, each a day older; other namespaces have one event. */
function clientOf({ pages, mayReadAll = true }: { pages: number; mayReadAll?: boolean }) {
  const asked: string[] = []
  const get = async (path: string, { parameters = {} }: Ask = {}): Promise<object> => {
    const { continue: after = '0', fieldSelector = '' } = parameters
    asked.push(`${path}?${fieldSelector} ${after}`)
    const isOfNamespace = path.includes('/namespaces/shop/')
    if (!isOfNamespace && !mayReadAll) {
      throw new ApiError({ code: 403, reason: 'Forbidden', message: 'no' })
    }
    const at = Number(after)
    const lastTimestamp = isOfNamespace ? `2026-11-${16 - at}T00:00:00Z` : '2026-11-14T12:00:00Z'
    const name = isOfNamespace ? `own-${at}` : 'other'
    const next = isOfNamespace && at + 1 < pages ? String(at + 1) : ''
    return {
      metadata: { continue: next },
      items: [{ metadata: { name, namespace: 'shop' }, involvedObject, lastTimestamp }],
    }
  }
  return { client: { get } as unknown as ApiClient, asked }
}

const namesOf = ({ entries }: Story): readonly string[] => entries.map(({ row }) => row.name)

const options: StoryOptions = {
  ...{ about, cluster: '', namespace: '' },
  fromMs: Date.parse('2026-01-01'),
  signal: new AbortController().signal,
  show: () => {},
  before: undefined,
}

test('shows what is known of a story, without gaps, and goes on from there', async () => {
  const { client, asked } = clientOf({ pages: 4 })
  const shown: Story[] = []
  const story = await loadStory(client, { ...options, show: (part) => shown.push(part) })
  assert.deepEqual(namesOf(story), ['own-3', 'own-2', 'other', 'own-1', 'own-0'])
  assert.equal(story.reachedMs, undefined)
  const [first] = shown
  assert.ok(first)
  assert.equal(first.reachedMs, Date.parse('2026-11-16'))
  assert.deepEqual(namesOf(first), ['own-0'])
  assert.ok(asked.every((one) => one.includes('since=2026-01-01')))
  const before = asked.length
  const again = await loadStory(client, { ...options, before: first })
  assert.deepEqual(namesOf(again), namesOf(story))
  assert.equal(asked.length - before, 3, 'what is known is not loaded again')
})

test('says what the user may not read, and does not ask again', async () => {
  const { client, asked } = clientOf({ pages: 2, mayReadAll: false })
  const shown: Story[] = []
  const story = await loadStory(client, { ...options, show: (part) => shown.push(part) })
  assert.match(story.lack, /^Only events of the namespace shop/)
  assert.equal(story.queries.length, 1)
  const [first] = shown
  assert.ok(first)
  const before = asked.length
  assert.equal((await loadStory(client, { ...options, before: first })).lack, story.lack)
  assert.deepEqual(
    asked.slice(before).filter((one) => !one.includes('/namespaces/shop/')),
    [],
  )
})

test('reads only memory without a time', async () => {
  const { client, asked } = clientOf({ pages: 1 })
  await loadStory(client, { ...options, fromMs: undefined })
  assert.ok(asked.every((one) => !one.includes('since=')))
})
