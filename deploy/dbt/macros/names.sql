{# What differs between the tables and the views of the files. All other names differ in case only, which neither
   database minds. #}

{% macro on_files() %}{{ return(target.type == 'duckdb') }}{% endmacro %}

{% macro record_id() %}{{ '_record_id' if on_files() else 'id' }}{% endmacro %}

{# The full name of a person. Files have its parts. #}
{% macro full_name() -%}
  {%- if on_files() -%} nullif(concat_ws(' ', nullif(firstname, ''), nullif(lastname, '')), '')
  {%- else -%} name
  {%- endif -%}
{%- endmacro %}

{# Accounts have a plain name, person accounts its parts. #}
{% macro account_name() -%}
  {%- if on_files() -%} coalesce(name, {{ full_name() }}) {%- else -%} name {%- endif -%}
{%- endmacro %}

{# When everything that was committed in Salesforce before is in the copy. Null, as before the first complete read, has
   to be old for dbt. #}
{% macro complete_through(entity) -%}
  select coalesce(min(complete_through), timestamp with time zone '1970-01-01 00:00:00+00')
  from {{ source('salesforce', '_freshness') }} where entity = '{{ entity }}'
{%- endmacro %}
