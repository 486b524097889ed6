# bash completion for mrrope
_mrrope() {
  local word="${COMP_WORDS[COMP_CWORD]}" at=$((COMP_CWORD - 1)) path= words= files= takes= grows= i
  if [[ "$word" == [:=] ]]; then word=; else [[ "${COMP_WORDS[at]}" == [:=] ]] && ((at--)); fi
  [[ "${COMP_WORDS[at]}" == @(elastic|far) ]] && { ((at--)); grows=yes; }
  local flag="${COMP_WORDS[at]}"
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "${path:+$path }${COMP_WORDS[i]}" in
      PATHS) path="${path:+$path }${COMP_WORDS[i]}" ;;
    esac
  done
  case "$path" in
    # CASES
  esac
  case "$takes" in
    some) COMPREPLY=() ;;
    files) COMPREPLY=($(compgen -f -- "$word")) ;;
    folders) COMPREPLY=($(compgen -d -- "$word")) ;;
    words*) COMPREPLY=($(compgen -W "${takes#words }" -- "$word")) ;;
    list*)
      local before= list="${takes#list }"
      [[ -n "$grows" ]] && list="${list%% + *}"
      list="${list/ + / }"
      [[ "$word" == *,* ]] && before="${word%,*},"
      COMPREPLY=($(compgen -P "$before" -W "$list" -- "${word##*,}")) ;;
    *)
      if [[ "$word" == -* || -z "$files" ]]; then
        COMPREPLY=($(compgen -W "$words" -- "$word"))
      else
        COMPREPLY=($(compgen -f -- "$word"))
      fi ;;
  esac
}
complete -o filenames -F _mrrope mrrope
