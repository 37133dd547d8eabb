import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { isSameOrigin, type OriginIdentity } from './origin-identity.ts'

const base = { origin: 'ca-1', originServer: 'https://a' }
const moved = { origin: 'ca-2', originServer: 'https://b' }

const cases: readonly (readonly [string, OriginIdentity, OriginIdentity, boolean])[] = [
  ['nothing changed', base, base, true],
  ['a new authority', base, { ...base, origin: 'ca-2' }, true],
  ['a new address', base, { ...base, originServer: 'https://b' }, true],
  ['a new authority and a new address', base, moved, false],
  ['the same uid elsewhere', { ...base, originUid: 'u' }, { ...moved, originUid: 'u' }, true],
  [
    'another uid in the same place',
    { ...base, originUid: 'u' },
    { ...base, originUid: 'v' },
    false,
  ],
  ['a uid that is not readable any more', { ...base, originUid: 'u' }, base, true],
  ['a uid that is readable now', base, { ...base, originUid: 'u' }, true],
  ['a uid that proves nothing', { ...base, originUid: 'u' }, moved, false],
  ['a first name', base, { ...base, originName: 'n' }, true],
  [
    'a first name of the same uid',
    { ...base, originUid: 'u' },
    { ...base, originName: 'n', originUid: 'u' },
    true,
  ],
  ['a first name elsewhere', base, { ...moved, originName: 'n' }, false],
  ['the same name elsewhere', { ...base, originName: 'n' }, { ...moved, originName: 'n' }, true],
  [
    'another name in the same place',
    { ...base, originName: 'n' },
    { ...base, originName: 'm' },
    false,
  ],
  [
    'another name of the same uid',
    { ...base, originName: 'n', originUid: 'u' },
    { ...base, originName: 'm', originUid: 'u' },
    false,
  ],
  [
    'another uid of the same name',
    { ...base, originName: 'n', originUid: 'u' },
    { ...base, originName: 'n', originUid: 'v' },
    false,
  ],
  ['a record of version 0.1', { origin: 'ca-1' }, { ...base, originUid: 'u' }, true],
  ['a record of version 0.1 of another authority', { origin: 'ca-0' }, base, false],
]

describe('isSameOrigin', () => {
  for (const [title, one, other, isSame] of cases) {
    test(`${title}: ${isSame ? 'the same cluster' : 'another cluster'}`, () => {
      assert.equal(isSameOrigin(one, other), isSame)
      assert.equal(isSameOrigin(other, one), isSame)
    })
  }
})
