/**
 * The syntax of `labelSelector`: `a`, `!a`, `a=b`, `a==b`, `a!=b`, `a in (b,c)`, `a notin (b,c)`,
 * `a>1`, `a<1`, joined by commas that mean "and". `in` and `notin` are also valid keys and values.
 * A missing value, even in a list, is the empty string.
 */
import { type Int64, parseInt64 } from '../../lib/go/go-integer.ts'
import { ownText } from '../../lib/text/own-text.ts'
import { truncate } from '../../lib/text/truncate.ts'
import { badRequest, type StatusError } from '../status.ts'
import { type FieldError, fieldErrorsText, invalidText } from '../validation/field-error.ts'
import { labelValueProblems, qualifiedNameProblems } from '../validation/names.ts'
import { type Labels, labelOf } from './compact-labels.ts'
import { ValueList } from './value-list.ts'

export interface LabelSelector {
  /** Whether the selector has no requirements. */
  readonly isEverything: boolean
  matches(labels: Labels): boolean
}

/**
 * Larger than any selector in practice. Each requirement is evaluated for each event, and a watch
 * retains all of them; most proxies would not forward a longer selector either.
 */
export const SELECTOR_BYTES_MAX: number = 8 * 1024
export const REQUIREMENTS_MAX = 100
/** The maximum of values in all lists together. */
const valuesMax = 1000
/** The maximum of errors reported for a list of values. The first few show what is wrong. */
const errorsMax = 10

type Test = (labels: Labels) => boolean

/** Throws a 400 that contains the found and the expected token. */
export function parseLabelSelector(text: string): LabelSelector {
  checkSelectorBytes(text, 'label')
  const tests = text === '' ? [] : new Parser(text).parse()
  return {
    isEverything: tests.length === 0,
    matches: (labels) => {
      for (const test of tests) if (!test(labels)) return false
      return true
    },
  }
}

/** Throws a 400 for a selector that is too long. */
export function checkSelectorBytes(text: string, kind: 'label' | 'field' | 'shard'): void {
  if (text.length * 3 <= SELECTOR_BYTES_MAX || Buffer.byteLength(text) <= SELECTOR_BYTES_MAX) return
  throw badRequest(`a ${kind} selector has at most ${SELECTOR_BYTES_MAX} bytes`)
}

interface Token {
  readonly kind: 'word' | 'symbol' | 'end'
  readonly text: string
}

const endToken: Token = { kind: 'end', text: '' }

class Parser {
  readonly #text: string
  readonly #pattern = /[ \t\r\n]*(?:([=!]=|[=!(),<>])|([^ \t\r\n=!(),<>]+))/y
  /** The lookahead. */
  #next: Token
  /** Number of values in all lists so far. */
  #values = 0

  constructor(text: string) {
    this.#text = text
    this.#next = this.#read()
  }

  parse(): readonly Test[] {
    const tests: Test[] = []
    if (this.#next.kind === 'end') return tests
    if (!this.#beginsRequirement()) {
      throw badRequest(`${foundText(this.#next)}, expected: !, identifier, or 'end of string'`)
    }
    for (;;) {
      if (tests.length === REQUIREMENTS_MAX) {
        throw badRequest(`a label selector has at most ${REQUIREMENTS_MAX} requirements`)
      }
      tests.push(this.#requirement())
      const separator = this.#take()
      if (separator.kind === 'end') return tests
      if (separator.text !== ',') {
        throw badRequest(`${foundText(separator)}, expected: ',' or 'end of string'`)
      }
      if (!this.#beginsRequirement()) {
        throw badRequest(`${foundText(this.#next)}, expected: identifier after ','`)
      }
    }
  }

  #requirement(): Test {
    const isNegated = this.#next.text === '!'
    if (isNegated) this.#take()
    const key = this.#word()
    const problems = qualifiedNameProblems(key)
    // The error has no field, which Kubernetes prints as `<nil>`.
    if (problems.length > 0)
      throw invalidRequirement([invalidText('<nil>', key, problems.join('; '))])
    return this.#testOf(ownText(key), isNegated)
  }

  #testOf(key: string, isNegated: boolean): Test {
    if (isNegated) return (labels) => labelOf(labels, key) === undefined
    if (this.#endsRequirement()) return (labels) => labelOf(labels, key) !== undefined
    const operator = this.#take()
    switch (operator.text) {
      case 'in':
      case 'notin':
        return listTest(key, this.#list(), operator.text === 'in')
      case '=':
      case '==':
      case '!=':
        return equalityTest(key, this.#value(), operator.text !== '!=')
      case '>':
      case '<':
        return orderTest(key, this.#value(), operator.text)
      default:
        throw unparsable(`${foundText(operator)}, expected: in, notin, =, ==, !=, gt, lt`)
    }
  }

  #value(): string {
    return this.#endsRequirement() ? '' : this.#word()
  }

  #word(): string {
    const token = this.#take()
    if (token.kind !== 'word') throw unparsable(`${foundText(token)}, expected: identifier`)
    return token.text
  }

  /** Sorted, without duplicates. */
  #list(): readonly string[] {
    const open = this.#take()
    if (open.text !== '(') throw unparsable(`${foundText(open)} expected: '('`)
    if (this.#next.kind !== 'word' && !this.#endsListed()) {
      throw unparsable(`${foundText(this.#next)}, expected: ',', ')' or identifier`)
    }
    const values = new Set<string>()
    do {
      values.add(this.#listed())
      this.#values += 1
      if (this.#values > valuesMax) {
        throw badRequest(`a label selector has at most ${valuesMax} values in its lists`)
      }
    } while (this.#take().text === ',')
    return [...values].sort()
  }

  /** Reads the value before the next comma or the end of the list. */
  #listed(): string {
    if (this.#endsListed()) return ''
    const token = this.#take()
    if (token.kind !== 'word') throw unparsable(`${foundText(token)}, expected: ',', or identifier`)
    if (!this.#endsListed()) throw unparsable(`${foundText(this.#next)}, expected: ',' or ')'`)
    return token.text
  }

  #beginsRequirement(): boolean {
    return this.#next.kind === 'word' || this.#next.text === '!'
  }

  #endsRequirement(): boolean {
    return this.#next.kind === 'end' || this.#next.text === ','
  }

  #endsListed(): boolean {
    return this.#next.text === ',' || this.#next.text === ')'
  }

  #take(): Token {
    const token = this.#next
    this.#next = this.#read()
    return token
  }

  #read(): Token {
    const match = this.#pattern.exec(this.#text)
    if (match === null) {
      this.#pattern.lastIndex = this.#text.length
      return endToken
    }
    const [, symbol, word = ''] = match
    return symbol === undefined ? { kind: 'word', text: word } : { kind: 'symbol', text: symbol }
  }
}

function listTest(key: string, values: readonly string[], isIn: boolean): Test {
  checkValues(key, values)
  return listedTest(key, new ValueList(values), isIn)
}

/** A separate function, so that the closure does not retain `values`. */
function listedTest(key: string, list: ValueList, isIn: boolean): Test {
  return (labels) => {
    const value = labelOf(labels, key)
    return (value !== undefined && list.has(value)) === isIn
  }
}

/** A missing label is not equal to any value. */
function equalityTest(key: string, sent: string, isEqual: boolean): Test {
  checkValues(key, [sent])
  const value = ownText(sent)
  return isEqual
    ? (labels) => labelOf(labels, key) === value
    : (labels) => labelOf(labels, key) !== value
}

function orderTest(key: string, value: string, operator: '>' | '<'): Test {
  const bound = parseInt64(value)
  if (bound === undefined) {
    const detail = "for 'Gt', 'Lt' operators, the value must be an integer"
    throw invalidRequirement([
      invalidText('values[0]', value, detail),
      ...valueErrors(key, [value]),
    ])
  }
  checkValues(key, [value])
  const isOrdered = (number: Int64) => (operator === '>' ? number > bound : number < bound)
  return (labels) => {
    const text = labelOf(labels, key)
    const number = text === undefined ? undefined : parseInt64(text)
    return number !== undefined && isOrdered(number)
  }
}

function checkValues(key: string, values: readonly string[]): void {
  const errors = valueErrors(key, values)
  if (errors.length > 0) throw invalidRequirement(errors)
}

function valueErrors(key: string, values: readonly string[]): FieldError[] {
  const errors: FieldError[] = []
  for (const [index, value] of values.entries()) {
    const problems = labelValueProblems(value)
    if (problems.length === 0) continue
    errors.push(invalidText(`values[${index}][${key}]`, value, problems.join('; ')))
    if (errors.length === errorsMax) break
  }
  return errors
}

function foundText({ text }: Token): string {
  return `found '${truncate(text)}'`
}

function invalidRequirement(errors: readonly FieldError[]): StatusError {
  return unparsable(fieldErrorsText(errors))
}

function unparsable(problem: string): StatusError {
  return badRequest(`unable to parse requirement: ${problem}`)
}
