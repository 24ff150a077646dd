{# StageName is stage_name, Pricebook2Id pricebook_2_id, LastCURequestDate last_curequest_date, Level__c level_c. #}
{% macro fivetran_name(expression) -%}
lower(regexp_replace(regexp_replace(regexp_replace(regexp_replace({{ expression }},
          '([a-z])([A-Z])', '\1_\2', 'g'), '([A-Za-z])([0-9])', '\1_\2', 'g'), '([0-9])([A-Za-z])', '\1_\2', 'g'),
          '__+', '_', 'g'))
{%- endmacro %}

{# Makes a schema of views with the names that Fivetran's connector gives tables and columns. Use it in a project with the
   package fivetran/salesforce, as on-run-start: then new columns are there with the next run. PostgreSQL only. #}
{% macro fivetran_views(from_schema='salesforce', to_schema='salesforce_fivetran') %}
do $views$
declare
  source record;
  definition text;
begin
  if to_regnamespace('{{ to_schema }}') is null then
    create schema {{ to_schema }};
  end if;
  for source in
    with fields as (
      -- The columns of the current tables. A name of REST: BillingAddress.City is BillingCity, Name.LastName is LastName.
      select
        f.entity, f.table_name, c.column_name, c.ordinal_position, c.data_type, k.state,
        regexp_replace(regexp_replace(k.field, '__c\.(\w+)$', '__\1__s'), '^Name\.|Address\.', '') as name
      from (select distinct entity, table_name from {{ from_schema }}._freshness) as f
      -- Histories have no such column.
      inner join information_schema.columns as d
        on d.table_schema = '{{ from_schema }}' and d.table_name = f.table_name and d.column_name = '_deleted_at'
      inner join {{ from_schema }}._columns as k on k.table_name = f.table_name
      inner join information_schema.columns as c
        on c.table_schema = '{{ from_schema }}' and c.table_name = f.table_name and c.column_name = k."column"
    ),
    named as (
      select distinct on (table_name, snake) *
      from (
        select *, left({{ fivetran_name('name') }}, 63) as snake
        from fields
      ) as all_names
      where snake not in ('id', 'is_deleted', 'system_modstamp')
      order by table_name, snake, state = 'gone since', ordinal_position
    )
    select
      table_name,
      left({{ fivetran_name('entity') }}, 63) as view_name,
      -- In the order of the table, so that new columns follow. Choices of multi-select picklists become one text.
      string_agg(
        case when data_type = 'ARRAY' then format('array_to_string(%I, '';'') as %I', column_name, snake)
          else format('%I as %I', column_name, snake) end,
        ', ' order by ordinal_position
      ) filter (where snake <> 'name') as columns,
      -- People have their name in parts, other records have it as it is.
      concat_ws(', ',
        string_agg(quote_ident(column_name), '') filter (where snake = 'name'),
        'nullif(concat_ws('' '', ' || string_agg(
          format('nullif(%I, '''')', column_name), ', '
          order by array_position(array['first_name', 'middle_name', 'last_name', 'suffix'], snake)
        ) filter (where name in ('FirstName', 'MiddleName', 'LastName', 'Suffix')) || '), '''')'
      ) as name
    from named
    group by table_name, entity
  loop
    definition := format(
      'view {{ to_schema }}.%I as select id, _updated_at as _fivetran_synced, _deleted_at is not null as _fivetran_deleted, '
      || '_deleted_at is not null as is_deleted, coalesce(_system_modstamp, _commit_timestamp) as system_modstamp, '
      || '%s%s from {{ from_schema }}.%I',
      source.view_name,
      case when source.name <> '' then 'coalesce(' || source.name || ') as name, ' else '' end,
      source.columns, source.table_name);
    begin
      execute 'create or replace ' || definition;
    exception when invalid_table_definition then
      -- A column has another type or is gone. The models that read the view are made again by the run that follows.
      execute format('drop view {{ to_schema }}.%I cascade', source.view_name);
      execute 'create ' || definition;
    end;
  end loop;
end
$views$
{% endmacro %}
