import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { eventsAbout, eventsElsewhere, mentionOf, readAbout, writeAbout } from './about.ts'
import { eventRow } from './event-row.ts'

test('round-trips an object through the URL', () => {
  assert.deepEqual(readAbout('Pod/shop/web-0@u-1'), {
    ...{ kind: 'Pod', namespace: 'shop', name: 'web-0', uid: 'u-1' },
  })
  assert.deepEqual(readAbout('0b9d-1'), { kind: '', namespace: '', name: '', uid: '0b9d-1' })
  const part = fc.string({ unit: fc.constantFrom(...'a%/@2F540'), minLength: 1 })
  fc.assert(
    fc.property(part, fc.option(part), part, fc.option(part), (kind, namespace, name, uid) => {
      const about = { kind, namespace: namespace ?? '', name, uid: uid ?? '' }
      assert.deepEqual(readAbout(writeAbout(about)), about)
    }),
  )
})

test('looks for events about an object in its namespace, and for related events elsewhere', () => {
  const pod = readAbout('Pod/shop/web-0')
  assert.deepEqual(eventsAbout(pod), { namespace: 'shop', terms: ['mentions=Pod/web-0'] })
  assert.deepEqual(eventsElsewhere(pod)?.terms, [
    ...['mentions=Pod/web-0', 'related.namespace=shop', 'related.name=web-0'],
    'metadata.namespace!=shop',
  ])
  assert.deepEqual(eventsAbout(readAbout('Node/node-1')), {
    namespace: '',
    terms: ['mentions=Node/node-1'],
  })
  assert.equal(eventsElsewhere(readAbout('Node/node-1')), undefined)
  const uid = '0b9d3a51-7a6c-4c4f-9a31-5c6a0d4b1e2f'
  assert.deepEqual(eventsAbout(readAbout(uid)).terms, [`mentions=${uid}`])
  assert.deepEqual(eventsAbout(readAbout(`Pod/shop/web-0@${uid}`)).terms, [`mentions=${uid}`])
  assert.deepEqual(eventsAbout(readAbout('Node/node-1@node-1')).terms, ['mentions=Node/node-1'])
  assert.deepEqual(eventsAbout(readAbout('Pod/shop/a%2Fb')).terms, [
    ...['involvedObject.kind=Pod', 'involvedObject.name=a/b'],
  ])
})

test('distinguishes objects of the same name in different namespaces', () => {
  const row = eventRow({
    metadata: { namespace: 'shop' },
    involvedObject: { kind: 'Job', namespace: 'shop', name: 'j', uid: '1' },
    related: { kind: 'Pod', namespace: 'other', name: 'web-0', uid: '2' },
  })
  assert.equal(mentionOf(row, readAbout('Pod/shop/web-0')), undefined)
  assert.equal(mentionOf(row, readAbout('Pod/other/web-0'))?.role, 'related')
  assert.equal(mentionOf(row, readAbout('po/other/web-0'))?.role, 'related')
  assert.equal(mentionOf(row, readAbout('Job/shop/j'))?.role, 'regarding')
  assert.equal(mentionOf(row, readAbout('Pod/other/web-0@2'))?.other?.kind, 'Job')
  assert.equal(mentionOf(row, readAbout('Pod/other/web-0@3')), undefined)
})

test('distinguishes a pod from a service of the same name', () => {
  const row = eventRow({
    involvedObject: { kind: 'Service', namespace: 'shop', name: 'web' },
    related: { kind: 'Pod', namespace: 'shop', name: 'web' },
  })
  assert.equal(mentionOf(row, readAbout('pod/shop/web'))?.role, 'related')
})
