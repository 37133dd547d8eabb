import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { DecodedDeleteOptions } from '../../api/delete-options.ts'
import { type DeleteOptions, readDeleteOptions } from './delete-options.ts'

const read = (text: string, body?: DecodedDeleteOptions): DeleteOptions =>
  readDeleteOptions(new URLSearchParams(text), body)

const unsupportedDryRun = (shown: string): string =>
  `dryRun: Unsupported value: ${shown}: supported values: "All"`
const bothSet = (policy: string): string =>
  `propagationPolicy: Invalid value: "${policy}": ` +
  'orphanDependents and deletionPropagation cannot be both set'
const unsupportedPolicy = (policy: string): string =>
  `propagationPolicy: Unsupported value: "${policy}": ` +
  'supported values: "Foreground", "Background", "Orphan", "nil"'

describe('readDeleteOptions', () => {
  test('without a body, the options are read from the query', () => {
    const unset = { uid: undefined, resourceVersion: undefined }
    const defaults = { isDryRun: false, preconditions: unset, orphanDependents: undefined }
    const cases: readonly (readonly [string, object])[] = [
      ['pretty=1', {}],
      ['dryRun=All', { isDryRun: true }],
      ['gracePeriodSeconds=-1&dryRun=All', { isDryRun: true }],
      ['gracePeriodSeconds=30', {}],
      ['resourceVersion=0', { preconditions: { uid: undefined, resourceVersion: '0' } }],
      ['uid=u&resourceVersion=', { preconditions: { uid: 'u', resourceVersion: undefined } }],
      ['orphanDependents=false', { orphanDependents: false }],
      ['orphanDependents', { orphanDependents: true }],
      ...['Foreground', 'Background', 'Orphan'].map(
        (policy) => [`propagationPolicy=${policy}`, {}] as const,
      ),
    ]
    for (const [text, options] of cases) {
      assert.deepEqual(read(text), { ...defaults, ...options }, text)
    }
    assert.deepEqual(read(''), { ...defaults, preconditions: {} })
  })

  test('the body overrides the query, except for dryRun', () => {
    const preconditions = { uid: 'u', resourceVersion: '5' }
    const body = { preconditions, orphanDependents: false }
    const query = 'uid=v&resourceVersion=9&orphanDependents=true&gracePeriodSeconds=abc'
    assert.deepEqual(read(query, body), {
      isDryRun: false,
      preconditions,
      orphanDependents: false,
    })
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
    ]
    for (const [text, body, problem] of cases) {
      const message = `DeleteOptions.meta.k8s.io "" is invalid: ${problem}`
      assert.throws(() => read(text, body), { code: 422, message }, `${text} ${problem}`)
    }
  })

  test('a grace period that is not a number is a 400', () => {
    assert.throws(() => read('gracePeriodSeconds=abc'), {
      code: 400,
      message: 'strconv.ParseInt: parsing "abc": invalid syntax',
    })
  })
})
