import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { DecodedDeleteOptions } from '../../api/delete-options.ts'
import {
  type DeleteOptions,
  readCollectionDeleteOptions,
  readDeleteOptions,
} from './delete-options.ts'

const read = (text: string, body?: DecodedDeleteOptions): DeleteOptions =>
  readDeleteOptions(new URLSearchParams(text), body)

const unsupportedDryRun = (shown: string): string =>
  `dryRun: Unsupported value: ${shown}: supported values: "All"`
const ONLY_DAMAGED = 'ignoreStoreReadErrorWithClusterBreakingPotential'
const notWith = (name: string): string =>
  `${ONLY_DAMAGED}: Invalid value: true: cannot be set together with .${name}`
const bothSet = (policy: string): string =>
  `propagationPolicy: Invalid value: "${policy}": ` +
  'orphanDependents and deletionPropagation cannot be both set'
const unsupportedPolicy = (policy: string): string =>
  `propagationPolicy: Unsupported value: "${policy}": ` +
  'supported values: "Foreground", "Background", "Orphan", "nil"'

describe('readDeleteOptions', () => {
  test('without a body, the options are read from the query', () => {
    const defaults = {
      isDryRun: false,
      preconditions: {},
      orphanDependents: undefined,
      onlyDamaged: false,
    }
    const cases: readonly (readonly [string, object])[] = [
      ['pretty=1', {}],
      ['dryRun=All', { isDryRun: true }],
      ['gracePeriodSeconds=-1&dryRun=All', { isDryRun: true }],
      ['gracePeriodSeconds=30', {}],
      ['resourceVersion=0', { preconditions: { uid: undefined, resourceVersion: '0' } }],
      ['uid=u&resourceVersion=', { preconditions: { uid: 'u', resourceVersion: undefined } }],
      ['orphanDependents=false', { orphanDependents: false }],
      ['orphanDependents', { orphanDependents: true }],
      [`${ONLY_DAMAGED}=true`, { onlyDamaged: true }],
      [`${ONLY_DAMAGED}=false&gracePeriodSeconds=1`, {}],
      [`${ONLY_DAMAGED}&dryRun=All`, { onlyDamaged: true, isDryRun: true }],
      ...['Foreground', 'Background', 'Orphan'].map(
        (policy) => [`propagationPolicy=${policy}`, {}] as const,
      ),
    ]
    for (const [text, options] of cases) {
      assert.deepEqual(read(text), { ...defaults, ...options }, text)
    }
    assert.deepEqual(read(''), defaults)
  })

  test('the body overrides the query, except for dryRun', () => {
    const preconditions = { uid: 'u', resourceVersion: '5' }
    const body = { preconditions, orphanDependents: false }
    const query = 'uid=v&resourceVersion=9&orphanDependents=true&gracePeriodSeconds=abc'
    assert.deepEqual(read(query, body), {
      isDryRun: false,
      preconditions,
      orphanDependents: false,
      onlyDamaged: false,
    })
    assert.equal(read('', { [ONLY_DAMAGED]: true }).onlyDamaged, true)
    assert.equal(read(`${ONLY_DAMAGED}=true`, {}).onlyDamaged, false)
    assert.equal(read('dryRun=All', body).isDryRun, true)
    assert.equal(read('dryRun=All', {}).isDryRun, true)
    assert.equal(read('', { dryRun: ['All'] }).isDryRun, true)
    assert.equal(read('', { dryRun: [] }).isDryRun, false)
  })

  test('an invalid option is a 422, in the query and in the body', () => {
    const cases: readonly (readonly [string, DecodedDeleteOptions | undefined, string])[] = [
      ['dryRun=Nope', undefined, unsupportedDryRun('["Nope"]')],
      ['dryRun=Nope', {}, unsupportedDryRun('["Nope"]')],
      ['', { dryRun: ['Nope'] }, unsupportedDryRun('["Nope"]')],
      ['propagationPolicy=Bogus', undefined, unsupportedPolicy('Bogus')],
      ['propagationPolicy=', undefined, unsupportedPolicy('')],
      ['', { propagationPolicy: 'nil' }, unsupportedPolicy('nil')],
      ['propagationPolicy=Orphan&orphanDependents=true', undefined, bothSet('Orphan')],
      ['', { propagationPolicy: 'Foreground', orphanDependents: true }, bothSet('Foreground')],
      [
        '',
        { propagationPolicy: 'x', orphanDependents: false },
        `[${bothSet('x')}, ${unsupportedPolicy('x')}]`,
      ],
      [`${ONLY_DAMAGED}=true&gracePeriodSeconds=0`, undefined, notWith('gracePeriodSeconds')],
      [`${ONLY_DAMAGED}=true&uid=u`, undefined, notWith('preconditions')],
      ['', { [ONLY_DAMAGED]: true, preconditions: {} }, notWith('preconditions')],
      [
        '',
        { [ONLY_DAMAGED]: true, propagationPolicy: 'Orphan', gracePeriodSeconds: 1 },
        `[${notWith('propagationPolicy')}, ${notWith('gracePeriodSeconds')}]`,
      ],
      ['', { [ONLY_DAMAGED]: true, orphanDependents: false }, notWith('orphanDependents')],
    ]
    for (const [text, body, problem] of cases) {
      const message = `DeleteOptions.meta.k8s.io "" is invalid: ${problem}`
      assert.throws(() => read(text, body), { code: 422, message }, `${text} ${problem}`)
    }
  })

  test('a collection cannot be deleted for damaged values only', () => {
    const body = { [ONLY_DAMAGED]: true }
    assert.throws(() => readCollectionDeleteOptions(new URLSearchParams(), body), {
      code: 422,
      message:
        `DeleteOptions.meta.k8s.io "" is invalid: ${ONLY_DAMAGED}: Invalid value: true: ` +
        'is not allowed with DELETECOLLECTION, try again after removing the option',
    })
    const dryRun = new URLSearchParams('dryRun=All')
    assert.equal(readCollectionDeleteOptions(dryRun, {}).isDryRun, true)
  })

  test('a grace period that is not a number is a 400', () => {
    assert.throws(() => read('gracePeriodSeconds=abc'), {
      code: 400,
      message: 'strconv.ParseInt: parsing "abc": invalid syntax',
    })
  })
})
