import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  managerOf,
  readCreateOptions,
  readPatchOptions,
  readUpdateOptions,
} from './write-options.ts'

const query = (text: string): URLSearchParams => new URLSearchParams(text)
const defaults = { isDryRun: false, fieldValidation: 'Warn', fieldManager: '' }

const refusals: readonly (readonly [string, string])[] = [
  ['dryRun=Some', 'dryRun: Unsupported value: ["Some"]: supported values: "All"'],
  ['dryRun=', 'dryRun: Unsupported value: [""]: supported values: "All"'],
  ['dryRun=true', 'dryRun: Unsupported value: ["true"]: supported values: "All"'],
  ['dryRun=All&dryRun=x', 'dryRun: Unsupported value: ["All","x"]: supported values: "All"'],
  [`fieldManager=${'x'.repeat(129)}`, 'fieldManager: Too long: may not be more than 128 bytes'],
  [`fieldManager=${'é'.repeat(65)}`, 'fieldManager: Too long: may not be more than 128 bytes'],
  [
    'fieldManager=%00',
    'fieldManager: Invalid value: "\\x00": invalid character U+0000 (at position 0)',
  ],
  [
    'fieldManager=%C3%A9%09b',
    'fieldManager: Invalid value: "é\\tb": invalid character U+0009 (at position 2)',
  ],
  [
    'fieldValidation=Bogus',
    'fieldValidation: Unsupported value: "Bogus": supported values: "", "Ignore", "Strict", "Warn"',
  ],
  [
    'fieldValidation=x&dryRun=y',
    '[dryRun: Unsupported value: ["y"]: supported values: "All", ' +
      'fieldValidation: Unsupported value: "x": supported values: "", "Ignore", "Strict", "Warn"]',
  ],
]

describe('readCreateOptions and readUpdateOptions', () => {
  test('the first value of each option counts', () => {
    const cases: readonly (readonly [string, object])[] = [
      ['', {}],
      ['pretty=true', {}],
      ['dryRun=All', { isDryRun: true }],
      ['dryRun=All&dryRun=All', { isDryRun: true }],
      ['fieldValidation=Strict', { fieldValidation: 'Strict' }],
      ['fieldValidation=Ignore&fieldValidation=x', { fieldValidation: 'Ignore' }],
      ['fieldValidation=', {}],
      ['fieldManager=a&fieldManager=b', { fieldManager: 'a' }],
      [`fieldManager=${'x'.repeat(128)}`, { fieldManager: 'x'.repeat(128) }],
      ['fieldManager=', {}],
      ['force=true', {}],
    ]
    for (const [text, options] of cases) {
      assert.deepEqual(readCreateOptions(query(text)), { ...defaults, ...options }, text)
      assert.deepEqual(readUpdateOptions(query(text)), { ...defaults, ...options }, text)
    }
  })

  test('an invalid option is a 422 that names the options of the verb', () => {
    for (const [text, problem] of refusals) {
      const refusal = (kind: string) => ({
        code: 422,
        message: `${kind}.meta.k8s.io "" is invalid: ${problem}`,
      })
      assert.throws(() => readCreateOptions(query(text)), refusal('CreateOptions'), text)
      assert.throws(() => readUpdateOptions(query(text)), refusal('UpdateOptions'), text)
      assert.throws(
        () => readPatchOptions(query(text), { isApply: false }),
        refusal('PatchOptions'),
        text,
      )
    }
  })

  test('an error message stays short, however long the options are', () => {
    const much = '%01'.repeat(20_000)
    for (const text of [
      `fieldManager=${much}`,
      `fieldValidation=${much}`,
      'dryRun=x&'.repeat(7000),
    ]) {
      assert.throws(
        () => readCreateOptions(query(text)),
        (error: Error) => error.message.length < 2000,
      )
    }
  })
})

describe('readPatchOptions', () => {
  test('force is only for an apply, and an apply must have a fieldManager', () => {
    const other = { isApply: false }
    const apply = { isApply: true }
    assert.deepEqual(readPatchOptions(query(''), other), { ...defaults, isForced: false })
    assert.deepEqual(readPatchOptions(query('fieldManager=m&force=maybe'), apply), {
      ...defaults,
      fieldManager: 'm',
      isForced: true,
    })
    assert.equal(readPatchOptions(query('fieldManager=m&force=0'), apply).isForced, false)
    for (const text of ['force=true', 'force=false', 'force']) {
      assert.throws(
        () => readPatchOptions(query(text), other),
        {
          code: 422,
          message:
            'PatchOptions.meta.k8s.io "" is invalid: ' +
            'force: Forbidden: may not be specified for non-apply patch',
        },
        text,
      )
    }
    for (const text of ['', 'fieldManager=', 'force=true']) {
      assert.throws(
        () => readPatchOptions(query(text), apply),
        {
          code: 422,
          message:
            'PatchOptions.meta.k8s.io "" is invalid: ' +
            'fieldManager: Required value: is required for apply patch',
        },
        text,
      )
    }
  })
})

test('managerOf: without a fieldManager it is the first word of the User-Agent', () => {
  assert.equal(managerOf('tester', 'kubectl/v1.36'), 'tester')
  assert.equal(managerOf('', 'kubectl/v1.36 (linux/amd64)'), 'kubectl')
  assert.equal(managerOf('', 'a\tb c/1'), 'ab c')
  assert.equal(managerOf('', `${'x'.repeat(127)}é/1`), 'x'.repeat(127))
  for (const userAgent of [undefined, '', '/1', '\x01/1']) {
    assert.equal(managerOf('', userAgent), 'unknown')
  }
})
